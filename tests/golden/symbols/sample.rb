# 辞書 📚
require_relative "words"

LIMIT = 10

# A dictionary.
module Library
  class Dictionary < Base
    attr_reader :words

    # Looks up.
    def look_up(word)
      self.normalise(word).then { |w| @words[w] }
    end

    def self.open(path)
      new(path)
    end

    def empty? = words.none?

    def []=(word, meaning)
      store(word, meaning)
    end

    class << self
      def default
        open("default")
      end
    end
  end

  Entry = Struct.new(:word) do
    def text
      word
    end
  end
end

class Library::Index
end

def top
  Library::Dictionary.open("x")
end
