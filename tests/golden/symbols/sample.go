// Package store keeps 鍵 and values. 🗝
package store

import (
	"fmt"

	text "strings"
)

const Limit = 10

// Store is a map with a limit.
type Store struct {
	items map[string]string
}

type (
	// Reader reads.
	Reader interface {
		Get(key string) (string, bool)
	}

	Key = string
)

type List[T any] struct{ head T }

// New makes one.
func New() *Store {
	return &Store{items: map[string]string{}}
}

// Get returns a value.
func (s *Store) Get(key string) (string, bool) {
	value, ok := s.items[text.ToLower(key)]
	fmt.Println(value)
	return value, ok
}

func (l List[T]) Head() T { return l.head }

func (Store) Close() {}

func Map[T, U any](in []T, f func(T) U) []U {
	return nil
}
