//! 石 🪨
const std = @import("std");

const limit = 10;

/// A stone.
pub const Stone = struct {
    weight: u8,

    /// Throws.
    pub fn throw(self: Stone) u8 {
        return heavier(self.weight);
    }

    const Kind = enum { small, large };
};

const Either = union(enum) { stone: Stone };

fn heavier(weight: u8) u8 {
    return weight + limit;
}

pub fn List(comptime T: type) type {
    return struct {
        items: []T,

        fn first() void {}
    };
}

test "stones are heavy" {
    _ = heavier(1);
}
