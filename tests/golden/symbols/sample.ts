// 名前 of shapes 🟦
import type { Point } from "./point";
import { measure } from "./measure";

export interface Shape {
  area(): number;
}

export type Name = string | symbol;

export enum Colour {
  Red,
  Green,
}

/** Overloaded. */
export function parse(text: string): Shape;
export function parse(text: string, strict: boolean): Shape;
export function parse(text: string, strict = false): Shape {
  return measure(text, strict);
}

@Component({
  selector: "square",
})
export abstract class Square<T> implements Shape {
  constructor(private readonly side: number) {}

  @Input()
  @Required() label = "";

  private scale = (by: number): number => this.side * by;

  /** What it covers. */
  @memoised
  area(): number {
    return this.scale(this.side);
  }

  abstract corners(): Point[];
}

export namespace Geometry.Flat {
  export const origin = (): Point => ({ x: 0, y: 0 });
}

declare module "point" {
  export function distance(a: Point, b: Point): number;
}

export default class extends Square<number> {}
