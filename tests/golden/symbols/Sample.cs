// 帳簿 📒
using System;
using Ledger.Money;

namespace Ledger.Books
{
    /// <summary>A book.</summary>
    [Serializable]
    public class Book<T> : IBook
    {
        private readonly T owner;

        public Book(T owner) { this.owner = owner; }

        ~Book() { }

        public int Pages { get; set; }

        public int this[int index] => index;

        /// <summary>Adds.</summary>
        [Obsolete]
        public int Add(int amount)
        {
            int Twice(int value) => value * 2;
            return this.Check(Twice(amount));
        }

        public int Add(long amount) => 1;

        public static bool operator ==(Book<T> a, Book<T> b) => true;

        private enum State { Open, Closed }
    }

    public interface IBook
    {
        int Check(int amount);
    }

    public struct Line { public int Amount; }

    public record Entry(int Amount);

    public delegate void Changed(Line line);
}
