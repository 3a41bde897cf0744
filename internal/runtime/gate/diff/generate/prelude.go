package generate

// prelude is part of every program: a source of values that is the same everywhere, the log, and garbage for the
// collector.
const prelude = `
type rngø struct {
	x    uint64
	fuel int
}

func newø(seed uint64, fuel int) *rngø { return &rngø{seed*0x9e3779b97f4a7c15 + 1, fuel} }

func (r *rngø) next() uint64 {
	r.x = r.x*6364136223846793005 + 1442695040888963407
	return r.x >> 33
}

func (r *rngø) n(k int) int { return int(r.next() % uint64(k)) }

func (r *rngø) spent() bool {
	r.fuel--
	return r.fuel < 0
}

// str returns a string that is made at run time.
func (r *rngø) str() string {
	switch r.n(12) {
	case 0:
		return ""
	case 1:
		return "h\xff\xfei\xc3"
	case 2:
		return "日本<&>\"'\u2028"
	case 3:
		return strings.Repeat("xy", r.n(30)) + strconv.Itoa(r.n(1000))
	}
	return "k" + strconv.Itoa(r.n(1000000))
}

func (r *rngø) float() float64 {
	switch r.n(10) {
	case 0:
		return math.Copysign(0, -1)
	case 1:
		return 1e300
	case 2:
		return -0.1
	case 3:
		return 1.0 / 3
	}
	return float64(r.n(1000)-500) / 4
}

func (r *rngø) int() int64 {
	return [...]int64{0, 1, -1, 127, 128, -129, 65535, -32769, 1 << 31, -1 << 63, 1<<63 - 1, int64(r.n(100))}[r.n(12)]
}

var (
	outø   []string
	sinkø  any
	depthø int
	fuelø  int
)

func logø(parts ...string) {
	if len(outø) < 1500 {
		outø = append(outø, strconv.Quote(strings.Join(parts, " ")))
	}
}

// deeperø bounds what is shown of a value.
func deeperø() bool {
	if depthø == 0 {
		fuelø = 150
	}
	if depthø > 7 || fuelø <= 0 {
		return false
	}
	depthø++
	fuelø--
	return true
}

func tryø(what string, f func()) {
	d := depthø
	defer func() {
		if p := recover(); p != nil {
			depthø = d
			text := fmt.Sprint(p)
			if err, ok := p.(error); ok {
				text = err.Error()
			}
			logø("panic in", what, scrubø(text), fmt.Sprintf("%T", p))
		}
	}()
	f()
}

var addressø = regexp.MustCompile("0x[0-9a-f]{6,}")

func scrubø(s string) string { return addressø.ReplaceAllString(s, "ADDRESS") }

func hashableø(v any) (ok bool) {
	defer func() { ok = recover() == nil }()
	return len(map[any]bool{v: true}) == 1
}

// churnø makes garbage of many sizes.
func churnø(n int) {
	for i := range n {
		switch i % 4 {
		case 0:
			sinkø = make([]byte, 16+i%700)
		case 1:
			sinkø = &[]string{strconv.Itoa(i) + "garbage"}[0]
		case 2:
			sinkø = map[int]*int{i: &i}
		case 3:
			sinkø = make([]*int, 1+i%60)
		}
	}
}

func Mainø(call *recurgent.Call) (any, error) {
	outø, depthø = nil, 0
	for i, f := range sectionsø {
		logø("section", strconv.Itoa(i))
		tryø("section", func() { f(newø(uint64(i), 400)) })
		churnø(20)
	}
	return outø, nil
}
`
