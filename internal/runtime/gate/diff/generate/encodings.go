package generate

// formatsText prints values with the verbs that all types accept.
const formatsText = `
	v := @mkT
	for _, verb := range []string{"%v", "%+v", "%#v", "%T", "%s", "%q", "%8v|", "%-6v|"} {
		tryø(verb, func() { logø(verb, scrubø(fmt.Sprintf(verb, v)), scrubø(fmt.Sprintf(verb, &v)), scrubø(fmt.Sprintf(verb, []@T{v}))) })
	}
	tryø("print", func() { logø(scrubø(fmt.Sprint(v, 1, "a", v)), scrubø(fmt.Sprintln(struct{ X, y @T }{v, v}))) })
	tryø("errorf", func() { logø(scrubø(fmt.Errorf("%w", fmt.Errorf("%v", v)).Error())) })
`

// verbsText prints values with all verbs, including wrong and incomplete ones.
const verbsText = `
	v := @mkT
	for _, verb := range []string{"%d", "%x", "%X", "%o", "%b", "%c", "%U", "%e", "%.2f", "%g", "%t", "%08.3f", "%+d", "% x", "%#x", "%-9d|", "%5t", "%+q", "%#q", "%.3s", "%x%%", "%!", "%[2]*[1]d", "%z", "%6.2v"} {
		tryø(verb, func() { logø(verb, scrubø(fmt.Sprintf(verb, v, 7))) })
	}
	tryø("append", func() { logø(string(fmt.Appendf(nil, "%v %[1]d", v))) })
`

// scanningText scans values of a type that may have a method Scan.
const scanningText = `
	for _, s := range []string{"", "12 ab  true c", "x\\n7 8", "1.5"} {
		tryø("scan", func() {
			a, b := @mkT, @mkT
			n, err := fmt.Sscan(s, &a, &b)
			logø(strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(a), @shT(b))
			n, err = fmt.Sscanf(s, "%3d%v", &a, &b)
			logø(strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(a), @shT(b))
			in := strings.NewReader(s)
			n, err = fmt.Fscanln(in, &a)
			logø(strconv.Itoa(n), scrubø(fmt.Sprint(err)), @shT(a), strconv.Itoa(in.Len()))
		})
	}
`

// streamsText writes to and reads from values that are writers or readers.
const streamsText = `
	v := @mkT
	for _, x := range []any{v, &v} {
		if w, ok := x.(io.Writer); ok {
			tryø("write", func() {
				n, err := fmt.Fprintf(w, "%s %d", "text", r.n(1000))
				logø(strconv.Itoa(n), fmt.Sprint(err))
				b := bufio.NewWriterSize(w, 16)
				n, err = b.WriteString(strings.Repeat("long ", 5))
				logø(strconv.Itoa(n), fmt.Sprint(err, b.Buffered(), b.Flush()))
				m, err := io.Copy(io.MultiWriter(w, io.Discard), strings.NewReader("copied"))
				logø(fmt.Sprint(m, err, json.NewEncoder(w).Encode([]int{1, 2})))
			})
		}
		if in, ok := x.(io.Reader); ok {
			tryø("read", func() {
				b, err := io.ReadAll(io.LimitReader(in, 700))
				logø(string(b), fmt.Sprint(err))
				lines := bufio.NewScanner(io.LimitReader(in, 300))
				for lines.Scan() {
					logø(lines.Text())
				}
				c, err := bufio.NewReader(io.TeeReader(in, io.Discard)).ReadByte()
				logø(fmt.Sprint(c, err, lines.Err()))
			})
		}
	}
	logø(@shT(v))
`

// jsonText encodes values as JSON and decodes them, also from JSON of other shapes.
const jsonText = `
	v := @mkT
	var text []byte
	tryø("marshal", func() {
		b, err := json.Marshal(v)
		text = b
		logø(string(b), scrubø(fmt.Sprint(err)))
	})
	tryø("indent", func() {
		b, err := json.MarshalIndent(map[string]any{"v": v, "p": &v, "l": []@T{v}}, ">", " ")
		logø(string(b), scrubø(fmt.Sprint(err)))
	})
	tryø("back", func() {
		var w @T
		err := json.Unmarshal(text, &w)
		logø(@shT(w), scrubø(fmt.Sprint(err)))
		err = json.Unmarshal(text, &v)
		logø(@shT(v), scrubø(fmt.Sprint(err)))
	})
	for _, s := range []string{"null", "{}", "[]", "3", "-1.5", "\"s\"", "true", "[1, \"a\", null, {}]", "{\"F0\": 1, \"f1\": [2], \"a1\": \"x\", \"x\": null, \"F2\": {\"F0\": \"7\"}}", "{\"3\": 4, \"true\": {}}", "[[1], [[]]]", "{", "\"\\ud800\""} {
		tryø("unmarshal", func() {
			w := new(@T)
			err := json.Unmarshal([]byte(s), w)
			logø(s, @shT(*w), scrubø(fmt.Sprint(err)))
		})
	}
	tryø("decoder", func() {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		d.UseNumber()
		var w struct {
			V *@T
		}
		err := d.Decode(&w)
		logø(scrubø(fmt.Sprint(err)))
	})
`

// xmlText encodes values as XML and decodes them.
const xmlText = `
	v := @mkT
	var text []byte
	tryø("marshal", func() {
		b, err := xml.Marshal(v)
		text = b
		logø(string(b), scrubø(fmt.Sprint(err)))
	})
	tryø("indent", func() {
		type outer struct {
			XMLName xml.Name ` + "`xml:\"urn:x outer\"`" + `
			V       @T
			L       []@T ` + "`xml:\"list>item\"`" + `
		}
		b, err := xml.MarshalIndent(outer{V: v, L: []@T{v, v}}, "", " ")
		logø(string(b), scrubø(fmt.Sprint(err)))
		var o outer
		err = xml.Unmarshal(b, &o)
		logø(@shT(o.V), strconv.Itoa(len(o.L)), o.XMLName.Space, scrubø(fmt.Sprint(err)))
	})
	tryø("back", func() {
		var w @T
		err := xml.Unmarshal(text, &w)
		logø(@shT(w), scrubø(fmt.Sprint(err)))
		err = xml.Unmarshal([]byte("<a d0=\"3\"><F0>5</F0><F1><F0>x</F0></F1><e><f2>1</f2></e></a>"), &w)
		logø(@shT(w), scrubø(fmt.Sprint(err)))
	})
`

// binaryText encodes values with encoding/binary and decodes them.
const binaryText = `
	v := @mkT
	tryø("binary", func() {
		logø(strconv.Itoa(binary.Size(v)))
		b, err := binary.Append(nil, binary.LittleEndian, v)
		logø(fmt.Sprintf("%x", b), scrubø(fmt.Sprint(err)))
		var w @T
		n, err := binary.Decode(b, binary.LittleEndian, &w)
		logø(strconv.Itoa(n), @shT(w), scrubø(fmt.Sprint(err)))
	})
`

// deepText compares two values that were made alike and a third one.
const deepText = `
	q := *r
	a := @mkT
	*r = q
	b := @mkT
	c := @mkT
	tryø("deep", func() {
		logø(strconv.FormatBool(reflect.DeepEqual(a, b)), strconv.FormatBool(reflect.DeepEqual(a, c)), strconv.FormatBool(reflect.DeepEqual(&a, &b)),
			strconv.FormatBool(reflect.DeepEqual([]@T{a}, []@T{b})), strconv.FormatBool(reflect.DeepEqual(map[string]@T{"a": a}, map[string]@T{"a": c})),
			strconv.FormatBool(reflect.DeepEqual(a, any(&a))), strconv.FormatBool(reflect.DeepEqual(struct{ v @T }{a}, struct{ v @T }{b})))
	})
	logø(@shT(a), @shT(c))
`

// iteratorsText leaves loops over iterators in every possible way.
const iteratorsText = `
	list := []@T{@mkT, @mkT, @mkT, @mkT}
	seq := func(yield func(int, @T) bool) {
		defer logø("sequence ends")
		for i, v := range list {
			if !yield(i, v) {
				logø("stopped")
				return
			}
		}
	}
	find := func(stop int) (found @T, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("recovered %v", p)
			}
		}()
	outer:
		for i, v := range seq {
			defer func() { logø("loop defer", strconv.Itoa(i)) }()
			for range 2 {
				if i == 0 {
					continue outer
				}
				if i == stop {
					break outer
				}
			}
			if i == stop+1 {
				panic("in loop")
			}
			if i == stop+2 {
				return v, nil
			}
			found = v
		}
		return found, errors.New("end")
	}
	for stop := range 4 {
		v, err := find(stop - 1)
		logø(@shT(v), fmt.Sprint(err))
	}
	next, stop := iter.Pull2(seq)
	i, v, ok := next()
	logø(strconv.Itoa(i), @shT(v), strconv.FormatBool(ok))
	churnø(9)
	i, v, ok = next()
	logø(strconv.Itoa(i), @shT(v), strconv.FormatBool(ok))
	stop()
	_, v, ok = next()
	logø(@shT(v), strconv.FormatBool(ok))
	one, halt := iter.Pull(slices.Values(list))
	for {
		v, ok := one()
		if !ok {
			break
		}
		logø(@shT(v))
	}
	halt()
	var evens iter.Seq[@T] = func(yield func(@T) bool) {
		for i, v := range seq {
			if i%2 == 0 && !yield(v) {
				return
			}
		}
	}
	for v := range evens {
		logø(@shT(v))
		break
	}
	logø(strconv.Itoa(len(slices.Collect(evens))))
`

// slicesText uses the functions of package slices.
const slicesText = `
	list := []@T{@mkT, @mkT, @mkT}
	less := func(a, b @T) int { return strings.Compare(@shT(a), @shT(b)) }
	list = slices.Insert(list, 1, @mkT, @mkT)
	list = slices.Insert(list, 2, list[1:3]...)
	churnø(9)
	sorted := slices.SortedFunc(slices.Values(list), less)
	logø(@shT(slices.MinFunc(list, less)), @shT(slices.MaxFunc(list, less)), strconv.FormatBool(slices.IsSortedFunc(sorted, less)))
	sorted = slices.CompactFunc(sorted, func(a, b @T) bool { return less(a, b) == 0 })
	logø(strconv.Itoa(len(sorted)))
	for chunk := range slices.Chunk(list, 2) {
		logø(strconv.Itoa(len(chunk)), @shT(chunk[0]))
	}
	list = slices.Replace(list, 0, 2, @mkT)
	list = slices.DeleteFunc(list, func(v @T) bool { return len(@shT(v))%3 == 0 })
	list = append(list, slices.Repeat([]@T{@mkT}, 2)...)
	sort.SliceStable(list, func(i, j int) bool { return @shT(list[i]) < @shT(list[j]) })
	for i, v := range slices.Backward(list) {
		logø(strconv.Itoa(i), @shT(v))
	}
	m := maps.Collect(slices.All(list))
	keys := slices.Sorted(maps.Keys(m))
	logø(fmt.Sprint(keys), @shT(m[keys[0]]), fmt.Sprintf("%T", m))
	logø(strconv.Itoa(slices.IndexFunc(list, func(v @T) bool { return @shT(v) == @shT(list[len(list)-1]) })), strconv.FormatBool(slices.EqualFunc(list, list[1:], func(a, b @T) bool { return less(a, b) == 0 })))
`
