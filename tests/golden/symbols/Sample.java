/* 版権 © nobody 🙂 */
package org.example.bank;

import java.util.List;
import org.example.money.Amount;

/**
 * An account.
 */
@Entity
@Table(name = "accounts")
public class Sample<T extends Comparable<T>> {
    private final List<T> entries = null;

    /** Opens one. */
    public Sample(List<T> entries) {
        check(entries);
    }

    @Override
    public String toString() {
        return this.render();
    }

    String render() { return new Amount(1).text(); }

    void add(int amount) {}

    void add(long amount) {}

    interface Visitor {
        void visit(Sample<?> account);
    }

    enum State {
        OPEN {
            State next() { return CLOSED; }
        },
        CLOSED;

        State next() { return OPEN; }
    }

    static class Inner {
        Runnable run() {
            return new Runnable() {
                public void run() {}
            };
        }
    }
}

record Pair(int left, int right) {
    Pair {
        check(left);
    }
}

@interface Entity {}
