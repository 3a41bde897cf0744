// Package reflection replaces the methods of reflect.Value that visit maps. They visit the keys in the order of package
// support's ranges.
package reflection

import (
	"iter"
	"reflect"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// MapKeys returns what replaces the method MapKeys of a value.
func MapKeys(v reflect.Value) func() []reflect.Value {
	return func() []reflect.Value {
		keys := v.MapKeys()
		slices.SortStableFunc(keys, rt.CompareKeys)
		return keys
	}
}

// A MapIter replaces reflect.MapIter. Like a range it visits the keys that the map had at the first Next, without those
// deleted meanwhile.
type MapIter struct {
	of      reflect.Value
	entries []entry
	started bool
	at      int // number of the current entry, from 1
}

type entry struct{ key, value reflect.Value }

// odd reports whether no lookup finds the key, as it does not equal itself (NaN).
func (e entry) odd() bool { return !e.key.Equal(e.key) }

// MapRange returns what replaces the method MapRange of a value.
func MapRange(v reflect.Value) func() *MapIter {
	return func() *MapIter {
		v.MapRange() // panics if v is not a map
		return &MapIter{of: v}
	}
}

// Next advances to the next key, and reports whether there is one.
func (i *MapIter) Next() bool {
	if !i.of.IsValid() {
		panic("MapIter.Next called on an iterator that does not have an associated map Value")
	}
	if i.at > len(i.entries) {
		panic("MapIter.Next called on exhausted iterator")
	}
	if !i.started {
		i.started = true
		for all := i.of.MapRange(); all.Next(); {
			i.entries = append(i.entries, entry{all.Key(), all.Value()})
		}
		slices.SortStableFunc(i.entries, func(a, b entry) int { return rt.CompareKeys(a.key, b.key) })
	}
	for i.at++; i.at <= len(i.entries); i.at++ {
		e := &i.entries[i.at-1]
		if value := i.of.MapIndex(e.key); value.IsValid() {
			e.value = value
			return true
		} else if i.of.Len() > 0 && e.odd() {
			return true
		}
	}
	return false
}

// Key returns the current key.
func (i *MapIter) Key() reflect.Value { return i.current("Key").key }

// Value returns the element of the current key as of the last call of Next.
func (i *MapIter) Value() reflect.Value { return i.current("Value").value }

func (i *MapIter) current(method string) entry {
	if i.at == 0 {
		panic("MapIter." + method + " called before Next")
	}
	if i.at > len(i.entries) {
		panic("MapIter." + method + " called on exhausted iterator")
	}
	return i.entries[i.at-1]
}

// Reset has the iterator visit another map, or none if v is the zero Value.
func (i *MapIter) Reset(v reflect.Value) {
	if v.IsValid() {
		v.MapRange() // panics if v is not a map
	}
	*i = MapIter{of: v}
}

// Seq returns what replaces the method Seq of a value.
func Seq(v reflect.Value) func() iter.Seq[reflect.Value] {
	if v.Kind() != reflect.Map {
		return v.Seq
	}
	return func() iter.Seq[reflect.Value] {
		return func(yield func(reflect.Value) bool) {
			for i := MapRange(v)(); i.Next() && yield(i.Key()); {
			}
		}
	}
}

// Seq2 returns what replaces the method Seq2 of a value.
func Seq2(v reflect.Value) func() iter.Seq2[reflect.Value, reflect.Value] {
	if v.Kind() != reflect.Map {
		return v.Seq2
	}
	return func() iter.Seq2[reflect.Value, reflect.Value] {
		return func(yield func(reflect.Value, reflect.Value) bool) {
			for i := MapRange(v)(); i.Next() && yield(i.Key(), i.Value()); {
			}
		}
	}
}
