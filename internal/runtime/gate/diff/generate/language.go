package generate

// orderText has assignments and calls whose operands log when they are evaluated.
const orderText = `
	trace := func(name string, v @T) @T {
		logø(name, @shT(v))
		return v
	}
	at := func(i int) int {
		logø("at", strconv.Itoa(i))
		return i
	}
	list := []@T{@mkT, @mkT, @mkT}
	arr := [3]@T{}
	m := map[int]@T{}
	list[at(0)], list[at(1)] = trace("a", list[1]), trace("b", list[0])
	arr[at(2)], m[at(1)] = trace("c", list[2]), trace("d", arr[2])
	m[at(3)] = list[at(0)]
	tryø("late", func() { list[at(9)] = trace("e", arr[0]) })
	tryø("nil", func() {
		var none map[int]@T
		none[at(1)] = trace("f", arr[0])
	})
	tryø("pointer", func() {
		var p *@T
		*p = trace("g", arr[at(1)])
	})
	s := struct{ x, y @T }{y: trace("y", list[0]), x: trace("x", list[1])}
	p, q := &s, &s.x
	*q, p.y, p = p.y, *q, nil
	logø(@shT(s.x), @shT(s.y), strconv.FormatBool(p == nil))
	got := []@T{trace("h", s.x), 2: trace("i", s.y)}
	func(v ...@T) { logø(strconv.Itoa(len(v))) }(trace("j", got[1]), trace("k", got[2]))
	defer func(v @T, n int) { logø("deferred", @shT(v), strconv.Itoa(n)) }(trace("l", s.x), at(len(list)))
	s.x = @mkT
	if v, ok := m[at(1)]; ok && trace("m", v) == trace("n", v) || at(4) > 3 {
		logø(@shT(v))
	}
`

// rangesText ranges over everything that can hold a type while it changes.
const rangesText = `
	arr := [3]@T{@mkT, @mkT}
	list := arr[:]
	for i, v := range arr {
		arr[2] = v
		logø(strconv.Itoa(i), @shT(v))
	}
	for i := range &arr {
		list = append(list, arr[i])
	}
	for i, v := range list {
		if i == 1 {
			list = list[:1]
			clear(list)
		}
		logø(@shT(v))
	}
	m := map[string]@T{"a": arr[0], "b": arr[1]}
	for k := range m {
		if k == "b" {
			delete(m, "a")
		}
		m[k] = arr[2]
	}
	logø(strconv.Itoa(len(m)), @shT(m["b"]))
	c := make(chan (@T), 2)
	c <- arr[0]
	c <- arr[1]
	for v := range c {
		logø(@shT(v))
		if len(c) == 0 {
			close(c)
		}
	}
	var v @T
	var kept []*@T
	for _, v = range arr {
		kept = append(kept, &v)
	}
	for _, w := range arr {
		kept = append(kept, &w)
	}
	v = @mkT
	for _, p := range kept {
		logø(@shT(*p))
	}
	for range func(yield func(@T, *@T) bool) { _ = yield(v, &v) && yield(arr[0], nil) } {
		logø("two")
	}
outer:
	for w, p := range func(yield func(@T, *@T) bool) { _ = yield(v, &v) && yield(arr[0], nil) } {
		for x := range slices.Values(arr[:]) {
			if p == nil {
				break outer
			}
			*p = x
			continue outer
		}
		logø(@shT(w))
	}
	logø(@shT(v))
`

// pullsText pulls from sequences that end early, panic, or are abandoned.
const pullsText = `
	seq := func(yield func(@T) bool) {
		defer logø("left")
		if yield(@mkT) && yield(@mkT) {
			panic(errors.New("in sequence"))
		}
	}
	next, stop := iter.Pull(seq)
	for i := range 4 {
		tryø("pull", func() {
			v, ok := next()
			logø(strconv.Itoa(i), @shT(v), strconv.FormatBool(ok))
		})
		churnø(5)
	}
	tryø("stop", stop)
	next, stop = iter.Pull(seq)
	tryø("pull", func() {
		defer stop()
		v, _ := next()
		panic(v)
	})
	s := &stackø[@T]{}
	s.Push(@mkT)
	s.Push(@mkT)
	s.Push(@mkT)
	for i := range 5 {
		tryø("seek", func() {
			v, n, err := s.Seek(i)
			logø(@shT(v), strconv.Itoa(n), fmt.Sprint(err))
		})
	}
	two, end := iter.Pull2(s.All())
	i, v, ok := two()
	end()
	logø(strconv.Itoa(i), @shT(v), strconv.FormatBool(ok))
`

// wideText holds a type inside a value too large for registers and for the slots of maps.
const wideText = `
	type wide struct {
		before [15]int64
		v      @T
		three  [3]@T
		after  [3]string
	}
	w := wide{v: @mkT, three: [3]@T{1: @mkT}, after: [3]string{r.str(), "b", r.str()}}
	w.before[14] = 9
	text := func(w wide) string { return @shT(w.v) + @shT(w.three[1]) + strings.Join(w.after[:], "") + strconv.Itoa(int(w.before[14])) }
	m := map[int]wide{1: w}
	list := []wide{w, {}, w}
	c := make(chan wide, 2)
	c <- w
	var boxed any = w
	change := func(w wide, n int, more ...wide) (wide, []wide) {
		w.v, w.before[14] = w.three[1], int64(n)
		return w, append(more, w)
	}
	x, more := change(m[1], 5, list[0], list[1])
	m[2] = x
	list = append(list, more...)
	list[1] = <-c
	churnø(30)
	logø(text(w), text(m[1]), text(m[2]), text(boxed.(wide)), strconv.Itoa(len(list)))
	for i, w := range list {
		w.before[14] += int64(i)
		logø(text(w), text(list[i]))
	}
	f := func() wide { return w }
	w = wide{}
	p := &list[3]
	*p = f()
	logø(text(*p), text(m[9]))
	next, stop := iter.Pull(slices.Values(list))
	y, _ := next()
	stop()
	logø(text(y))
`

// wideKeysText uses map keys too large to be stored in the slots of a map.
const wideKeysText = `
	type wide struct {
		before [17]int64
		key    @T
	}
	m := map[wide]wide{}
	var keys []wide
	for i := range 40 {
		q := newø(uint64(i), 60)
		r = q
		k := wide{key: @mkT}
		k.before[16] = int64(i)
		m[k] = k
		keys = append(keys, k)
	}
	churnø(200)
	wrong := 0
	for _, k := range keys {
		if v, ok := m[k]; !ok || v != k {
			wrong++
		}
	}
	delete(m, keys[0])
	set := map[[3]@T]bool{{keys[0].key}: true, {2: keys[1].key}: false}
	logø(strconv.Itoa(wrong), strconv.Itoa(len(m)), strconv.FormatBool(set[[3]@T{keys[0].key}]), @shT(keys[5].key))
`

// orderedText compares and sorts values of an ordered type.
const orderedText = `
	a, b := @mkT, @mkT
	list := []@T{a, b, @mkT, a}
	logø(fmt.Sprint(a < b, a >= b, cmp.Compare(a, b), cmp.Less(b, a)), @shT(min(a, b)), @shT(max(b, a, b)), @shT(cmp.Or(a, b)))
	slices.Sort(list)
	i, ok := slices.BinarySearch(list, b)
	logø(@shT(list[0]), @shT(slices.Max(list)), strconv.Itoa(i), fmt.Sprint(ok, slices.IsSorted(list), slices.Compare(list, list[1:])))
	list = slices.Compact(list)
	logø(strconv.Itoa(len(list)), fmt.Sprintf("%T %v", list, slices.Sorted(slices.Values(list[:1]))))
	m := map[@T]int{a: 1, b: 2}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		logø(@shT(k), strconv.Itoa(m[k]))
	}
`

// countsText ranges over an integer type, shifts by it, and indexes with it.
const countsText = `
	n := (@T)(5)
	for i := range n {
		logø(fmt.Sprintf("%T %d", i, i))
		if i > 2 {
			break
		}
	}
	v := @mkT
	x, y := uint8(200), int64(-7)
	tryø("shift", func() { logø(fmt.Sprint(x<<v, y>>v, 1<<v, v<<1, v>>x)) })
	tryø("index", func() { logø(strconv.Itoa([]int{1, 2, 3}[v])) })
	tryø("make", func() { logø(strconv.Itoa(len(make([]byte, v&7)))) })
	v |= 6
	v >>= 1
	v &^= n
	logø(fmt.Sprint(v, -v, ^v, v*v, v/n, v%n))
`

// mapsText uses the functions of package maps.
const mapsText = `
	m := map[string]@T{"a": @mkT, "b": @mkT}
	n := maps.Clone(m)
	maps.Copy(n, map[string]@T{"c": m["a"], "a": m["b"]})
	maps.Insert(m, maps.All(map[string]@T{"d": n["c"]}))
	maps.DeleteFunc(n, func(k string, v @T) bool { return k == "b" || @shT(v) == "" })
	same := maps.EqualFunc(m, n, func(a, b @T) bool { return @shT(a) == @shT(b) })
	logø(fmt.Sprint(same, len(m), len(n)), @shT(n["a"]), @shT(n["c"]), @shT(m["d"]))
	values := slices.SortedFunc(maps.Values(n), func(a, b @T) int { return strings.Compare(@shT(a), @shT(b)) })
	logø(strconv.Itoa(len(values)), fmt.Sprintf("%T", maps.Collect(maps.All(m))))
`

// listsText stores values in the containers of the standard library.
const listsText = `
	l := list.New()
	e := l.PushBack(@mkT)
	l.PushFront(@mkT)
	l.InsertAfter(@mkT, e)
	churnø(9)
	for x := l.Front(); x != nil; x = x.Next() {
		logø(@shT(x.Value.(@T)))
	}
	l.MoveToFront(e)
	logø(@shT(l.Remove(e).(@T)), strconv.Itoa(l.Len()))
	round := ring.New(3)
	for i := range round.Len() {
		round.Value = any(@mkT)
		if i == 1 {
			round.Value = &i
		}
		round = round.Next()
	}
	round.Do(func(v any) {
		x, ok := v.(@T)
		logø(strconv.FormatBool(ok), @shT(x))
	})
`

// scansText scans values of a type from text.
const scansText = `
	for _, s := range []string{"7", "-3 x", "true", "a b", "0x1f", "1.5e3", "(1+2i)", ""} {
		tryø("scan", func() {
			v, w := @mkT, @mkT
			n, err := fmt.Sscan(s, &v, &w)
			logø(s, strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(v), @shT(w))
			n, err = fmt.Sscanf(s, "%v", &v)
			logø(strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(v))
			n, err = fmt.Fscanln(strings.NewReader(s+"\n9"), &w)
			logø(strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(w))
		})
	}
`
