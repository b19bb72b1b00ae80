// 音楽 🎵
import Foundation

let limit = 10

/// A song.
@objc
public final class Song: NSObject {
    let title: String

    init(title: String) {
        self.title = title
    }

    deinit {}

    /// Plays.
    @discardableResult
    func play(at speed: Double) -> Bool {
        func inner() -> Bool { true }
        return inner()
    }

    var length: Int {
        return title.count
    }

    subscript(index: Int) -> Character { title.first! }

    static func == (left: Song, right: Song) -> Bool { true }
}

struct Album {
    var songs: [Song]
}

enum Genre: String {
    case rock

    func label() -> String { rawValue }
}

protocol Playable {
    func play(at speed: Double) -> Bool
}

extension Album: Playable {
    func play(at speed: Double) -> Bool { songs[0].play(at: speed) }
}

actor Player {
    func stop() {}
}

func shuffle<T>(_ items: [T]) -> [T] { items.shuffled() }

typealias Songs = [Song]
