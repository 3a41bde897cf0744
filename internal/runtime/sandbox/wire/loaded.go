package wire

import (
	"errors"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// PutLoad builds the frame of a program's source in f.
func PutLoad(f *Builder, source string) {
	f.Begin(KindLoad)
	f.PutString(source)
}

// ParseLoad parses the frame of PutLoad.
func ParseLoad(payload []byte) (source string, err error) {
	p := parse(payload)
	source = p.TakeString()
	if !p.End() {
		return "", ErrFrame
	}
	return source, nil
}

// Loaded is a runner's report on a source. One field is set.
type Loaded struct {
	Facts   *report.Facts
	Refusal *report.Refusal
	Error   string // why the engine cannot compile the source
	Fault   string // an internal fault of the engine
}

// Tags of the variants of Loaded.
const (
	loadedError byte = iota
	loadedFault
	loadedRefusal
	loadedFacts
)

// Put builds the frame in f. Facts or a refusal beyond MaxFacts are replaced by an error.
func (l *Loaded) Put(f *Builder) {
	f.Begin(KindLoaded)
	l.putBody(f)
}

func (l *Loaded) putBody(f *Builder) {
	begun := len(f.b)
	switch {
	case l.Facts != nil:
		f.PutByte(loadedFacts)
		putFacts(f, l.Facts)
	case l.Refusal != nil:
		f.PutByte(loadedRefusal)
		putRefusal(f, l.Refusal)
	case l.Fault != "":
		f.PutByte(loadedFault)
		f.PutString(l.Fault)
	default:
		f.PutByte(loadedError)
		f.PutString(l.Error)
	}
	if len(f.b)-begun > MaxFacts-64 {
		f.b = f.b[:begun]
		(&Loaded{Error: "the facts of the program are too large"}).putBody(f)
	}
}

// maxEngine bounds the name and version of an engine, in bytes.
const maxEngine = 64

// ParseLoaded parses a runner's report. Exactly one field of the result is set. Every text is valid UTF-8 and bounded;
// those in Facts and Refusal are bounded by the length of the payload.
func ParseLoaded(payload []byte) (*Loaded, error) {
	p := parse(payload)
	return takeLoaded(&p)
}

func takeLoaded(p *Parser) (*Loaded, error) {
	l := &Loaded{}
	switch p.TakeByte() {
	case loadedFacts:
		l.Facts = takeFacts(p)
	case loadedRefusal:
		l.Refusal = takeRefusal(p)
	case loadedFault:
		l.Fault = p.TakeText(MaxMessage)
	case loadedError:
		l.Error = p.TakeText(MaxMessage)
	default:
		p.fail()
	}
	switch {
	case !p.End():
		return nil, errors.New("facts of no known form")
	case l.Facts == nil && l.Refusal == nil && l.Error == "" && l.Fault == "":
		return nil, errors.New("neither facts nor a refusal")
	}
	return l, nil
}

func putFacts(f *Builder, x *report.Facts) {
	for _, list := range factLists(x) {
		f.PutStrings(*list)
	}
	var flags uint64
	for i, flag := range factFlags(x) {
		if *flag {
			flags |= 1 << i
		}
	}
	f.PutUint(flags)
	f.PutString(x.Engine)
	f.PutString(x.Interface)
}

// takeFacts parses facts. Unknown flags are malformed.
func takeFacts(p *Parser) *report.Facts {
	x := &report.Facts{}
	for _, list := range factLists(x) {
		*list = p.TakeStrings()
	}
	flags := p.TakeUint()
	for i, flag := range factFlags(x) {
		*flag = flags&(1<<i) != 0
	}
	if flags >= 1<<len(factFlags(x)) {
		p.fail()
	}
	x.Engine, x.Interface = p.TakeText(maxEngine), p.TakeText(MaxFacts)
	return x
}

// factLists returns the lists of x in wire order.
func factLists(x *report.Facts) []*[]string {
	return []*[]string{&x.Imports, &x.HistoryPatterns, &x.CapabilityPatterns, &x.Literals, &x.ContextReads,
		&x.ContextWrites, &x.Hosts, &x.Writes, &x.Tools}
}

// factFlags returns the flags of x in wire order, from bit 0 on.
func factFlags(x *report.Facts) []*bool {
	return []*bool{&x.HistoryAccess, &x.UsesArgs, &x.UsesTools, &x.UsesFetch, &x.UsesDelegate, &x.UsesClock,
		&x.UsesRandomness, &x.UsesContent, &x.Prints, &x.Nondeterministic}
}

func putRefusal(f *Builder, r *report.Refusal) {
	for _, s := range []string{r.Type, r.Message, r.Hint} {
		f.PutString(s)
	}
	f.PutUint(uint64(r.Line))
	f.PutUint(uint64(r.Column))
	f.PutStrings(r.Errors)
}

func takeRefusal(p *Parser) *report.Refusal {
	return &report.Refusal{Type: p.TakeText(MaxFacts), Message: p.TakeText(MaxFacts), Hint: p.TakeText(MaxFacts),
		Line: int(p.TakeUint() & (1<<31 - 1)), Column: int(p.TakeUint() & (1<<31 - 1)), Errors: p.TakeStrings()}
}
