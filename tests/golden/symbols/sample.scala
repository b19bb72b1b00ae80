// 料理 🍜
package org.example.kitchen

import org.example.food.{Rice, Soup => Broth}

/** A dish. */
@deprecated
class Dish(name: String) extends Food {
  val price = 10

  /** Cooks. */
  def cook(minutes: Int): Dish = {
    def inner(x: Int) = x
    heat(inner(minutes))
  }

  def heat(minutes: Int): Dish
  val twice = (x: Int) => x * 2
}

trait Food {
  def taste(): Unit
}

object Dish {
  def apply(name: String): Dish = new Dish(name)
}

case class Menu(dishes: List[Dish])

enum Spice {
  case Hot, Mild
}

def order(menu: Menu): Dish = menu.dishes.head

type Name = String
