package reflection

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// Keys come in order, however they are visited.
func TestOrder(t *testing.T) {
	t.Parallel()
	m := map[int]string{}
	var want []int64
	for i := range 100 {
		m[i] = fmt.Sprint(i)
		want = append(want, int64(i))
	}
	v := reflect.ValueOf(m)
	var keys, ranged, first, both []int64
	for _, k := range MapKeys(v)() {
		keys = append(keys, k.Int())
	}
	for i := MapRange(v)(); i.Next(); {
		ranged = append(ranged, i.Key().Int())
		if i.Value().String() != m[int(i.Key().Int())] {
			t.Errorf("%v has %v", i.Key(), i.Value())
		}
	}
	for k := range Seq(v)() {
		first = append(first, k.Int())
	}
	for k, e := range Seq2(v)() {
		if both = append(both, k.Int()); e.String() != m[int(k.Int())] {
			t.Errorf("%v has %v", k, e)
		}
	}
	for _, got := range [][]int64{keys, ranged, first, both} {
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	}
	n := 0
	for range Seq(reflect.ValueOf([]int{1, 2}))() {
		n++
	}
	for range Seq2(reflect.ValueOf([]int{1, 2}))() {
		n++
	}
	if n != 4 {
		t.Errorf("%d elements of two lists of 2", n)
	}
}

// What is deleted meanwhile is left out, what is changed shows, and NaN is visited.
func TestChangesMeanwhile(t *testing.T) {
	t.Parallel()
	m := map[float64]int{1: 1, 2: 2, 3: 3, math.NaN(): 4}
	var got []int64
	for i := MapRange(reflect.ValueOf(m))(); i.Next(); {
		got = append(got, i.Value().Int())
		delete(m, 2)
		m[3] = 30
		m[9] = 9
	}
	if want := []int64{4, 1, 30}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Misuse panics with the text of package reflect.
func TestMisuse(t *testing.T) {
	t.Parallel()
	empty := reflect.ValueOf(map[int]int{})
	type iterator interface {
		Next() bool
		Key() reflect.Value
		Value() reflect.Value
		Reset(v reflect.Value)
	}
	for name, misuse := range map[string]func(i iterator){
		"key first":          func(i iterator) { i.Key() },
		"value first":        func(i iterator) { i.Value() },
		"key behind":         func(i iterator) { i.Next(); i.Key() },
		"next behind":        func(i iterator) { i.Next(); i.Next() },
		"next without a map": func(i iterator) { i.Reset(reflect.Value{}); i.Next() },
	} {
		got := panics(func() { misuse(MapRange(empty)()) })
		want := panics(func() { misuse(empty.MapRange()) })
		if got != want || want == "" {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func panics(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
