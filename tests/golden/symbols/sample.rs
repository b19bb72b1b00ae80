//! Trees 🌳 of 節.

use crate::arena::Arena;
use std::{fmt, io::Read};

const DEPTH: usize = 4;

/// A node.
#[derive(Debug)]
pub struct Node<T> {
    value: T,
}

pub enum Colour {
    Red,
}

/// Can be walked.
pub trait Walk {
    /// Goes down.
    fn down(&self) -> usize;

    fn up(&self) -> usize {
        self.down()
    }
}

impl<T> Node<T> {
    /// Makes one.
    #[inline]
    pub fn new(value: T) -> Self {
        Self { value }
    }
}

impl<T: fmt::Debug> Walk for Node<T> {
    fn down(&self) -> usize {
        helpers::depth(DEPTH)
    }
}

mod helpers {
    pub fn depth(most: usize) -> usize {
        fn inner() {}
        most
    }
}

macro_rules! node {
    ($value:expr) => {
        Node::new($value)
    };
}

pub type Tree = Node<Arena>;

#[cfg(test)]
mod tests {
    #[test]
    fn it_grows() {
        node!(1);
    }
}
