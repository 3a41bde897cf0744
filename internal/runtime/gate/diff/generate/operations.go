package generate

import (
	"go/types"
)

// operations lists what programs do with types. Each line is one template; an operation listed twice is chosen more
// often.
var operations []operation

func init() {
	operations = []operation{
		{name: "values", on: always, text: valuesText},
		{name: "containers", on: always, text: containersText},
		{name: "closures", on: always, text: closuresText},
		{name: "defers", on: always, text: defersText},
		{name: "boxing", on: always, text: boxingText},
		{name: "generics", on: always, text: genericsText},
		{name: "channels", on: always, text: channelsText},
		{name: "formats", on: always, text: formatsText},
		{name: "verbs", on: func(t types.Type) bool { return addressFree(t) }, text: verbsText},
		{name: "scanning", on: concrete, text: scanningText},
		{name: "streams", on: streams, text: streamsText},
		{name: "json", on: always, write: jsonUse},
		{name: "xml", on: always, write: xmlUse},
		{name: "deep equality", on: always, text: deepText},
		{name: "iterators", on: always, text: iteratorsText},
		{name: "slices package", on: always, text: slicesText},
		{name: "many", on: always, text: manyText},
		{name: "type switch", on: always, write: typeSwitch},
		{name: "assertions", on: concrete, write: assertions},
		{name: "conversions", on: always, write: conversions},
		{name: "comparison", on: comparable, text: compareText},
		{name: "keys", on: comparable, text: keysText},
		{name: "many keys", on: isKey, text: manyKeysText},
		{name: "map", on: kind[*types.Map], text: mapText},
		{name: "slice", on: kind[*types.Slice], text: sliceText},
		{name: "array", on: func(t types.Type) bool {
			a, ok := t.Underlying().(*types.Array)
			return ok &&
				a.Len() > 0
		}, text: arrayText},
		{name: "pointer", on: kind[*types.Pointer], text: pointerText},
		{name: "channel", on: kind[*types.Chan], text: chanText},
		{name: "function", on: kind[*types.Signature]},
		{name: "fields", on: isStruct, write: fields},
		{name: "fields", on: isStruct, write: fields},
		{name: "promoted", on: isStruct, write: promoted},
		{name: "methods", on: hasMethods, write: (*gen).methodCalls},
		{name: "methods", on: hasMethods, write: (*gen).methodCalls},
		{name: "errors", on: isError, write: errorChains},
		{name: "errors", on: isError, write: errorChains},
		{name: "heap", on: always, write: heaps},
		{name: "binary", on: concrete, text: binaryText},
		{name: "cycles", on: isStruct, write: cycles},
		{name: "local types", on: always, text: localText},
		{name: "order", on: comparable, text: orderText},
		{name: "ranges", on: always, text: rangesText},
		{name: "pulls", on: always, text: pullsText},
		{name: "wide", on: always, text: wideText},
		{name: "wide keys", on: isKey, text: wideKeysText},
		{name: "ordered", on: ordered, text: orderedText},
		{name: "counts", on: integer, text: countsText},
		{name: "maps package", on: always, text: mapsText},
		{name: "lists", on: concrete, text: listsText},
		{name: "scans", on: always, text: scansText},
		{name: "literals", on: isStruct, write: literals},
		{name: "constraints", on: always, write: constraints},
	}
}

// valuesText copies values between variables, pointers and structs.
const valuesText = `
	a := @mkT
	b := a
	c := @mkT
	p := new(@T)
	logø(@shT(*p))
	*p = a
	a, c = c, a
	churnø(9)
	var z @T
	logø(@shT(a), @shT(b), @shT(c), @shT(*p), @shT(z))
	s := struct {
		x byte
		v @T
		y byte
	}{1, b, 2}
	t := s
	t.v, t.y = c, 3
	pp := &p
	**pp = t.v
	logø(@shT(s.v), @shT(t.v), @shT(**pp), fmt.Sprint(s.x, s.y, t.x, t.y))
`

// containersText stores values in arrays, slices and maps, also nested ones.
const containersText = `
	arr := [3]@T{1: @mkT}
	list := []@T{@mkT, arr[1], 4: @mkT}
	brr := arr
	brr[0] = list[4]
	arr[2] = brr[0]
	table := map[string][]@T{"a": list, "b": {@mkT}}
	table["a"] = append(table["a"], arr[:]...)
	table["c"] = append(table["c"], table["b"][0])
	nested := map[int]map[string]@T{3: {"x": list[0]}}
	nested[4] = map[string]@T{}
	nested[4]["y"] = nested[3]["x"]
	tryø("nil map", func() { nested[5]["z"] = list[0] })
	churnø(20)
	var two [2][2]@T
	two[1][0] = list[0]
	row := two[1]
	two[1][0] = list[4]
	i := len(list)
	tryø("index", func() { logø(@shT(list[i])) })
	tryø("slice", func() { logø(@shT(list[2:i-4][0])) })
	logø(@shT(arr[0]), @shT(arr[1]), @shT(arr[2]), @shT(brr[0]), @shT(row[0]), @shT(two[1][0]))
	for _, k := range slices.Sorted(maps.Keys(table)) {
		for i, v := range table[k] {
			logø(k, strconv.Itoa(i), @shT(v))
		}
	}
	v, ok := nested[3]["none"]
	logø(@shT(v), strconv.FormatBool(ok), @shT(nested[4]["y"]), strconv.Itoa(len(nested)))
	clear(list)
	logø(@shT(list[0]), @shT(table["a"][0]))
`

// closuresText captures values in function literals.
const closuresText = `
	v := @mkT
	get := func() @T { return v }
	set := func(x @T) (old @T) {
		old, v = v, x
		return
	}
	var fs []func() @T
	for i, x := range []@T{@mkT, v, @mkT} {
		fs = append(fs, func() @T {
			if i == 1 {
				x, v = v, x
			}
			return x
		})
	}
	for i := range 2 {
		defer func() { logø("deferred", strconv.Itoa(i), @shT(v)) }()
	}
	churnø(20)
	logø(@shT(set(@mkT)), @shT(get()))
	for _, f := range fs {
		logø(@shT(f()), @shT(v))
	}
	var rec func(n int, x @T) (@T, int)
	rec = func(n int, x @T) (@T, int) {
		if n == 0 {
			return x, 0
		}
		y, d := rec(n-1, x)
		return y, d + 1
	}
	x, d := rec(5, v)
	logø(@shT(x), strconv.Itoa(d))
`

// defersText panics with values, recovers them, and returns them through named results.
const defersText = `
	f := func(v @T) (named @T, err error) {
		defer func() {
			if p := recover(); p != nil {
				x, ok := p.(@T)
				logø("recovered", strconv.FormatBool(ok), @shT(x))
				named, err = x, errors.New("panicked")
			}
		}()
		defer func(x @T) {
			logø("first", @shT(x))
			named = x
		}(v)
		v = @mkT
		defer logø("second", @shT(v))
		if r.n(2) == 0 {
			panic(v)
		}
		return v, nil
	}
	for range 3 {
		v, err := f(@mkT)
		logø(@shT(v), fmt.Sprint(err))
	}
	variadic := func(n int, vs ...@T) []@T {
		if n < len(vs) {
			vs[n] = @mkT
		}
		return vs
	}
	s := []@T{@mkT, @mkT}
	out := variadic(1, s...)
	logø(@shT(out[1]), @shT(s[1]), strconv.Itoa(len(variadic(0))), @shT(variadic(0, s[0], s[1])[0]), @shT(s[0]))
`

// boxingText converts values, and containers of them, to interfaces and back.
const boxingText = `
	v := @mkT
	var a any = v
	b := a
	v = @mkT
	list := []any{a, v, &v, []@T{v}, map[string]@T{"k": v}, [1]@T{v}, struct{ X @T }{v}, func() @T { return v }, make(chan (@T), 1)}
	churnø(30)
	for _, x := range list {
		logø(fmt.Sprintf("%T", x))
		switch x := x.(type) {
		case *@T:
			logø("pointer", @shT(*x))
		case []@T:
			logø("slice", @shT(x[0]))
		case map[string]@T:
			logø("map", @shT(x["k"]))
		case [1]@T:
			logø("array", @shT(x[0]))
		case struct{ X @T }:
			logø("struct", @shT(x.X))
		case func() @T:
			logø("func", @shT(x()))
		case chan (@T):
			logø("chan", strconv.Itoa(cap(x)))
		}
	}
	if x, ok := b.(@T); ok {
		logø(@shT(x))
	}
	tryø("equal", func() { logø(strconv.FormatBool(a == b), strconv.FormatBool(a == any(v))) })
	tryø("assertion", func() { logø(fmt.Sprint(a.(fmt.Stringer) != nil)) })
	tryø("assertion", func() { logø(strconv.Itoa(len(a.(map[uint16]@T)))) })
`

// channelsText sends values through channels, with and without select.
const channelsText = `
	c := make(chan (@T), 3)
	var in chan<- (@T) = c
	var out <-chan (@T) = c
	v := @mkT
	in <- v
	in <- @mkT
	v = <-out
	churnø(9)
	select {
	case in <- v:
		logø("sent")
	default:
		logø("full")
	}
	var none chan (@T)
	select {
	case x := <-none:
		logø(@shT(x))
	case x, ok := <-out:
		logø("received", @shT(x), strconv.FormatBool(ok))
	}
	select {
	case none <- v:
	default:
		logø("default")
	}
	in <- @mkT
	close(in)
	for x := range out {
		logø(@shT(x))
	}
	x, ok := <-c
	logø(@shT(x), strconv.FormatBool(ok), strconv.Itoa(len(c)))
	tryø("send", func() { in <- v })
	tryø("close", func() { close(c) })
	cc := make(chan chan (@T), 1)
	cc <- make(chan (@T), 1)
	(<-cc) <- v
`
