package generate

import (
	"fmt"
	"slices"
	"strings"
)

// plain adds a section about statements or values of basic types.
func (g *gen) plain() {
	if len(g.sections) == 0 {
		g.funcs = append(g.funcs, flowHelpers)
	}
	switch g.IntN(10) {
	case 0:
		g.section("integers", g.integers())
	case 1:
		g.section("floats", g.floats())
	case 2:
		g.section("conversions", g.numericConversions())
	case 3:
		g.section("constants", g.constants())
	case 4:
		g.section("strings", g.strings())
	case 5, 6:
		if !slices.Contains(g.funcs, orderHelpers) {
			g.funcs = append(g.funcs, orderHelpers)
		}
		g.section("order", g.order())
	default:
		var calls []string
		var body strings.Builder
		body.WriteString("\tsteps" + mark + " = 0\n")
		for range 1 + g.IntN(3) {
			name := g.flowFunction(calls)
			if len(calls) < 2 {
				calls = append(calls, name)
			}
			fmt.Fprintf(&body, "\tfor i := range 3 {\n\t\ttry%s(\"flow\", func() { log%[1]s(strconv.Itoa(%s(i - 1 + r.n(5)))) })\n\t}\n", mark, name)
		}
		g.section("flow", body.String())
	}
}

// integerTypes lists all integer types, without aliases.
var integerTypes = []string{"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64",
	"uintptr"}

// integers writes operations on a random integer type, defined or as an alias, with operands at the limits.
func (g *gen) integers() string {
	t, s := pick(g, integerTypes...), pick(g, integerTypes...)
	declare := "type N " + t + "\n"
	if g.percent(40) {
		declare = "type N = " + t + "\n"
	}
	ops := g.Perm(14)[:6]
	var b strings.Builder
	b.WriteString("\t" + declare + "\tvar vals []N\n\tfor range 9 {\n\t\tvals = append(vals, N(r.int()))\n\t}\n")
	b.WriteString("\tfor i, a := range vals {\n\t\tfor _, b := range vals[:i+1] {\n")
	fmt.Fprintf(&b, "\t\t\tk := %s(b)\n", s)
	for _, op := range ops {
		text := []string{"a + b", "a - b", "a * b", "a / b", "a % b", "a & b", "a | b", "a ^ b", "a &^ b", "a << k",
			"a >> k", "-a ^ ^b", "min(a, b) - max(a, 3, b)", "a<<(k&15) | a>>(k&7)"}[op]
		fmt.Fprintf(&b, "\t\t\ttry%s(%q, func() { log%[1]s(%[2]q, fmt.Sprint(a, b, %[2]s)) })\n", mark, text)
	}
	b.WriteString("\t\t\tc := a\n\t\t\tc += b\n\t\t\tc ^= a >> 1\n\t\t\tc++\n\t\t\tc *= c\n\t\t\tlog" + mark +
		"(fmt.Sprint(c, a < b, a >= b, a == b))\n")
	b.WriteString("\t\t\ttry" + mark + "(\"assign\", func() { c /= b; c %= a; c <<= k; c &^= a; log" + mark +
		"(fmt.Sprint(c)) })\n")
	b.WriteString("\t\t}\n\t}\n\tlog" + mark + "(fmt.Sprintf(\"%T %d\", vals[0], bits.OnesCount64(uint64(vals[1]))))\n")
	return b.String()
}

// floatValues is a list of floats with the special ones.
const floatValues = `[]N{0, N(math.Copysign(0, -1)), 1, -1.5, 0.1, 3e38, 1e-45, N(math.Inf(1)), N(math.Inf(-1)), N(math.NaN()), N(r.float()), 16777217, 4503599627370497.5}`

// floats writes operations on floats and complex numbers with special values.
func (g *gen) floats() string {
	t := pick(g, "float32", "float64")
	c := map[string]string{"float32": "complex64", "float64": "complex128"}[t]
	var b strings.Builder
	fmt.Fprintf(&b, "\ttype N %s\n\ttype C %s\n\tvals := %s\n\tfor i, a := range vals {\n\t\tfor _, b := range vals[:i+1] {\n", t, c, floatValues)
	ops := []string{"a + b", "a - b", "a * b", "a / b", "-a", "a*b + a", "a - b*b", "min(a, b)", "max(b, a, 1)",
		"a / b / a"}
	for _, i := range g.Perm(len(ops))[:5] {
		fmt.Fprintf(&b, "\t\t\tlog%s(%q, fmt.Sprint(a, b, %[2]s))\n", mark, ops[i])
	}
	b.WriteString("\t\t\tlog" + mark +
		"(fmt.Sprint(a < b, a <= b, a == b, a != b, !(a > b), a >= b), strconv.FormatUint(math.Float64bits(float64(a-b)), 16))\n")
	fmt.Fprintf(&b, "\t\t\tz := C(complex(a, b))\n\t\t\tw := C(complex(b, %s(1)))\n", t)
	fmt.Fprintf(&b, "\t\t\tlog%s(fmt.Sprint(z*w, z/w, z+w, z == w, real(z), imag(-z), z != z))\n", mark)
	b.WriteString("\t\t}\n\t\tm := map[N]int{}\n\t\tm[a]++\n\t\tm[a]++\n\t\tlog" + mark +
		"(strconv.Itoa(len(m)), fmt.Sprint(any(a) == any(a), [1]N{a} == [1]N{a}))\n\t}\n")
	return strings.ReplaceAll(b.String(), "complex(b, "+t+"(1))", "complex(b, 1)")
}

// numericConversions writes conversions between two numeric types, including floats that no integer can hold.
func (g *gen) numericConversions() string {
	all := append([]string{"float32", "float64"}, integerTypes...)
	from, to := pick(g, all...), pick(g, all...)
	var b strings.Builder
	if strings.HasPrefix(from, "float") {
		fmt.Fprintf(&b, "\ttype N %s\n\tvals := append(%s, -1, -129, 128.9, 255.5, 256, -0.9, 65536, 2147483648, -2147483649, 4294967296.5, 9.3e18, -9.3e18, 1.9e19, 1e20, -1e20)\n", from, floatValues)
	} else {
		fmt.Fprintf(&b, "\ttype N %s\n\tvar vals []N\n\tfor range 15 {\n\t\tvals = append(vals, N(r.int()))\n\t}\n",
			from)
	}
	fmt.Fprintf(&b, "\ttype M %s\n\tfor _, a := range vals {\n\t\tlog%s(fmt.Sprint(a, M(a), %s(a), N(M(a)), %s(a)))\n",
		to, mark, to, pick(g, all...))
	if !strings.HasPrefix(from, "float") {
		b.WriteString("\t\tlog" + mark +
			"(strconv.Quote(string(rune(a))), fmt.Sprintf(\"%T %v %x\", M(a), M(a), []byte(string(rune(a)))))\n")
	}
	b.WriteString("\t}\n")
	return b.String()
}

// constants writes all kinds of constants: typed, untyped, with iota, larger than any type.
func (g *gen) constants() string {
	var b strings.Builder
	b.WriteString("\tconst (\n")
	t := pick(g, "", "int", "uint8", "float64", "rune", "time.Duration")
	fmt.Fprintf(&b, "\t\tA %s = iota%s\n\t\tB\n\t\t_\n\t\tC, D = iota * 2, \"s\" + \"%s\"\n\t\tE, F\n", t,
		pick(g, "", " + 1", " * 3", " << 2"), pick(g, "x", "\\xff", "é"))
	b.WriteString("\t)\n")
	big := []string{"1 << 100", "1<<62 - 1", "'a' * 3", "1e30", "0x1p-2", "math.MaxUint64", "1 << 3.0", "7.0 / 2",
		"7 / 2", "-7 % 3", "1_000_000 * 0b11", "0o17", "len(\"é\\xff\")", "math.Pi * 1e10"}
	for i := range 6 {
		fmt.Fprintf(&b, "\tconst k%d = %s\n", i, pick(g, big...))
		fmt.Fprintf(&b, "\tlog%s(fmt.Sprint(float64(k%d), float32(k%[2]d/3), k%[2]d/(1<<60) > %d, complex64(k%[2]d)))\n", mark, i, g.IntN(3))
	}
	fmt.Fprintf(&b, "\tlog%s(fmt.Sprintf(\"%%T %%v %%v %%v %%v %%v %%v\", A, A, B, C, D, E, F))\n", mark)
	b.WriteString("\tx := r.n(5)\n\tlog" + mark +
		"(fmt.Sprint(x<<1+1<<2, 1<<x, uint8(200)+uint8(x)*60, 'a'+rune(x), float32(x)/3, -5/2, -5%3, ^x&0xf, x&^1))\n")
	b.WriteString("\tvar s uint = uint(x)\n\tvar i = 1 << s\n\tvar j int32 = 1 << s\n\tvar w int64 = 1.0 << 33\n\tvar u = uint64(1<<s) << 62\n\tvar q float64 = float64(uint(1) << s)\n\tlog" + mark + "(fmt.Sprint(i, j, w, u, q, 1<<s == 2, [20]int{1 << 3: 4, 1}[9]))\n")
	return b.String()
}

// strings writes operations on strings that may not be valid UTF-8.
func (g *gen) strings() string {
	var b strings.Builder
	b.WriteString("\ttype S string\n\ttype B []byte\n\ttype R []rune\n\ts := S(r.str() + " + pick(g, `"\xff"`,
		`"é\xc3"`, `"\xed\xa0\x80"`, `"日本"`, `"\xf4\x90\x80\x80"`, `""`) + " + r.str())\n")
	b.WriteString("\tfor i, c := range s {\n\t\tlog" + mark + "(strconv.Itoa(i), strconv.QuoteRune(c))\n\t}\n")
	uses := []string{
		`log(fmt.Sprintf("%q %x %+q %v %T", s, s, s, []byte(s), s))`,
		`log(fmt.Sprint([]rune(s), R(s), B(s), len(s), utf8.RuneCountInString(string(s)), utf8.ValidString(string(s))))`,
		`log(string([]rune(s)), string(R(s)), string(B(s)), string([]byte(s)[:len(s)/2]))`,
		`for i := range len(s) + 1 { try("slice", func() { log(string(s[i:]), string(s[:i+1])) }) }`,
		`b, err := json.Marshal(map[S]any{s: s, "b": []byte(s)}); log(string(b), fmt.Sprint(err)); var m map[S]any; err = json.Unmarshal(b, &m); log(fmt.Sprintf("%q %v", m, err))`,
		`m := map[S]int{s: 1, s[:len(s)/2]: 2}; m[S([]rune(s))] += 5; log(strconv.Itoa(len(m)), strconv.Itoa(m[s]), fmt.Sprint(s == S([]rune(s)), s < "h", s+"a" > s))`,
		`log(strings.ToUpper(string(s)), strings.ToValidUTF8(string(s), "?"), strings.Title(string(s)), strings.Map(func(r rune) rune { return r + 1 }, string(s)))`,
		`log(fmt.Sprintf("%q", strings.Split(string(s), "")), fmt.Sprintf("%q", strings.Fields(string(s))), fmt.Sprintf("%.3s|%8.2q|%c", s, s, []rune(s)))`,
		`var w strings.Builder; for _, c := range []byte(s) { w.WriteByte(c ^ 1); w.WriteRune(rune(c) << 3) }; log(w.String())`,
		`switch { case s == "": log("empty"); case s[0] > 0x7f: log("high"); case strings.ContainsRune(string(s), '\uFFFD'): log("bad") }`,
		`log(strconv.QuoteToASCII(string(s)), strconv.Quote(string(s[:1]+s)), string(append([]byte(s), s...)), string(append(B(nil), "é"...)))`,
		`c := make(B, 5); n := copy(c, s); log(strconv.Itoa(n), string(c), string(bytes.ToLower(c)), string(bytes.TrimRight(c, "\x00")))`,
		`log(fmt.Sprint(strings.Compare(string(s), "k"), strings.EqualFold(string(s), string(s)+""), strings.Index(string(s), "\xff"), strings.LastIndexByte(string(s), 'y')))`,
		`for i, c := range []byte(s) { if c == 'k' { continue }; log(fmt.Sprint(i, c)) ; break }; log(regexp.MustCompile("[^a-z]+").ReplaceAllString(string(s), "<$0>"))`,
	}
	for _, i := range g.Perm(len(uses))[:6] {
		u := strings.NewReplacer("log(", "log"+mark+"(", "try(", "try"+mark+"(").Replace(uses[i])
		b.WriteString("\t{\n\t\t" + u + "\n\t}\n")
	}
	return b.String()
}
