#!/bin/bash
# 道具 🔧
set -eu

LIMIT=10

# Says it.
say() {
  echo "$1"
}

function shout {
  say "$1!"
}

function tools::run() {
  inner() {
    shout x
  }
  inner
}

say "done"
