// 🦊 A queue of 作業 that are done one after another.
import first, { second as other, third } from "./steps";
import * as clock from "./clock";
const { later } = require("./later");

const LIMIT = 10;

/** Waits, then does it. */
export const delayed = async (task) => {
  await clock.wait(LIMIT);
  return other(task);
};

// The queue itself.
export class Queue extends Base {
  static #count = 0;

  onDone = (event) => {
    this.push(event);
  };

  // Adds one.
  push(task) {
    return delayed(task);
  }

  get size() { return this.items.length; }

  async *[Symbol.asyncIterator]() {}
}

const handlers = {
  open() {
    later();
  },
  nested: { close: () => {} },
  "on-error": () => {},
};

Queue.prototype.clear = function () {
  third(handlers);
};

function* numbers() {
  function inner() {
    return numbers();
  }
  yield inner();
}

let small = 1, tiny = () => 2;

module.exports = function () {
  return first();
};
