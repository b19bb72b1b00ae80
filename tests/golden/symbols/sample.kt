// 天気 ⛅
package org.example.weather

import org.example.sky.Cloud

const val LIMIT = 10

/** A station. */
@Serializable
class Station(val name: String) : Base() {
    private val readings = mutableListOf<Int>()

    constructor(other: Station) : this(other.name) {
    }

    /** Reads. */
    @Synchronized
    fun read(at: Long): Int {
        fun inner(): Int = 1
        return this.check(inner())
    }

    companion object {
        fun default() = Station("x")
    }

    inner class Sensor {
        fun value() = 1
    }
}

interface Reads {
    fun read(at: Long): Int
}

enum class Sky {
    CLEAR,
    CLOUDY;

    fun next(): Sky = CLEAR
}

object Registry {
    fun find(name: String): Station? = null
}

data class Reading(val value: Int)

fun String.toStation(): Station = Station(this)

fun <T> List<T>.latest(): T = last()

typealias Readings = List<Reading>
