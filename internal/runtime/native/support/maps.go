package support

import "iter"

// The functions below replace those of package maps whose results or callbacks depend on the order of a range. They
// visit the keys in the order of Range.

// MapsAll replaces maps.All.
func MapsAll[Map ~map[K]V, K comparable, V any](m Map) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for r := Over(m); r.Next(); {
			if !yield(r.Key(), r.Value()) {
				return
			}
		}
	}
}

// MapsKeys replaces maps.Keys.
func MapsKeys[Map ~map[K]V, K comparable, V any](m Map) iter.Seq[K] {
	return func(yield func(K) bool) {
		for r := Over(m); r.Next(); {
			if !yield(r.Key()) {
				return
			}
		}
	}
}

// MapsValues replaces maps.Values.
func MapsValues[Map ~map[K]V, K comparable, V any](m Map) iter.Seq[V] {
	return func(yield func(V) bool) {
		for r := Over(m); r.Next(); {
			if !yield(r.Value()) {
				return
			}
		}
	}
}

// MapsEqual replaces maps.Equal.
func MapsEqual[M1, M2 ~map[K]V, K, V comparable](m1 M1, m2 M2) bool {
	return MapsEqualFunc(m1, m2, func(a, b V) bool { return a == b })
}

// MapsEqualFunc replaces maps.EqualFunc.
func MapsEqualFunc[M1 ~map[K]V1, M2 ~map[K]V2, K comparable, V1, V2 any](m1 M1, m2 M2, eq func(V1, V2) bool) bool {
	if len(m1) != len(m2) {
		return false
	}
	for r := Over(m1); r.Next(); {
		if v2, ok := m2[r.Key()]; !ok || !eq(r.Value(), v2) {
			return false
		}
	}
	return true
}

// MapsDeleteFunc replaces maps.DeleteFunc.
func MapsDeleteFunc[M ~map[K]V, K comparable, V any](m M, del func(K, V) bool) {
	for r := Over(m); r.Next(); {
		if del(r.Key(), r.Value()) {
			delete(m, r.Key())
		}
	}
}
