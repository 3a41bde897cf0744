package tier

import (
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// Bounds of what is written out about differences. The oldest go first.
const (
	maxFindings     = 64
	maxFindingBytes = 2 << 20
)

// A Finding is a program that ends otherwise natively than on the engine, with all that it takes to see so again. Values of secret keys are masked.
type Finding struct {
	At         time.Time         `json:"at"`
	Namespace  agent.Namespace   `json:"namespace,omitempty"` // absent: the default one
	Role       string            `json:"role"`
	Method     string            `json:"method"`
	Checksum   string            `json:"checksum"` // of the program
	Origin     string            `json:"origin"`   // call, fixture or example, and its id
	Identity   string            `json:"identity"` // of toolchain and daemon
	Executable string            `json:"executable"`
	Engine     End               `json:"engine"`
	Native     End               `json:"native"`
	Truncated  bool              `json:"truncated,omitempty"` // input and journal were too large to be written out
	Program    string            `json:"program"`
	Args       []json.RawMessage `json:"args,omitempty"`
	Kwargs     json.RawMessage   `json:"kwargs,omitempty"`
	Context    json.RawMessage   `json:"context,omitempty"`
	History    json.RawMessage   `json:"input_history,omitempty"`
	Now        time.Time         `json:"now"`
	Seed       uint64            `json:"seed,string"`
	Journal    json.RawMessage   `json:"journal,omitempty"`
}

// An End is how a run ended.
type End struct {
	Value        json.RawMessage `json:"value,omitempty"`
	ErrorType    string          `json:"error_type,omitempty"` // of the program's own error, or of a failure
	ErrorMessage string          `json:"error_message,omitempty"`
	Context      json.RawMessage `json:"context_change,omitempty"`
	HostCalls    int             `json:"host_calls"`
}

// differ turns the program off for good, counts the difference and writes it out.
func (t *Tier) differ(p *Program, x *sandbox.Executable, s Sample, compiled *sandbox.Result) {
	t.o.Metrics.EngineDifference()
	var rules *mask.Rules
	known := false
	err := t.ask(p.key, func(s Source) error {
		rules, known = s.Rules(), true
		return nil
	})
	if !known { // nothing is written out without the rules for its secrets
		t.o.Logger.Error().Err(err).Str("checksum", p.key.Checksum).Msg("a program ends otherwise natively than on the engine")
		p.turnOff(differs, "natively it ends otherwise than on the engine, on "+s.Origin, 0)
		return
	}
	mask := func(raw json.RawMessage) json.RawMessage {
		masked, _ := rules.JSON(raw)
		return masked
	}
	f := Finding{At: t.o.Now().UTC(), Namespace: p.key.stored(), Role: p.key.Role, Method: p.key.Method, Checksum: p.key.Checksum, Origin: s.Origin, Identity: t.o.Identity, Executable: x.Digest,
		Engine: endOf(&s.Result, mask), Native: endOf(compiled, mask), Program: s.Request.Program.Source, Kwargs: mask(s.Request.Kwargs), History: mask(s.Request.InputHistory),
		Now: s.Request.Now, Seed: s.Request.Seed, Journal: mask(s.Result.Effects.Journal)}
	for _, a := range s.Request.Args {
		f.Args = append(f.Args, mask(a))
	}
	f.Engine.ErrorMessage, f.Native.ErrorMessage = rules.Text(f.Engine.ErrorMessage), rules.Text(f.Native.ErrorMessage)
	if len(s.Request.Context) > 0 {
		f.Context = mask(agent.Encoded(s.Request.Context))
	}
	path, err := t.findings.write(&f)
	t.o.Logger.Error().AnErr("write_error", err).Str("role", f.Role).Str("method", f.Method).Str("checksum", f.Checksum).Str("origin", f.Origin).Str("file", path).
		Msg("a program ends otherwise natively than on the engine")
	p.turnOff(differs, "natively it ends otherwise than on the engine, on "+s.Origin, 0)
}

func (f *Finding) key() Key {
	return Key{cmp.Or(f.Namespace, agent.DefaultNamespace), f.Role, f.Method, f.Checksum}
}

func endOf(res *sandbox.Result, mask func(json.RawMessage) json.RawMessage) End {
	e := End{Value: mask(res.Value), HostCalls: res.Effects.Asks}
	switch {
	case res.Failure != nil:
		e.ErrorType, e.ErrorMessage = res.Failure.Type, res.Failure.Message
	case res.Authored != nil:
		e.ErrorType, e.ErrorMessage = res.Authored.Type, res.Authored.Message
	}
	if res.Context != nil {
		e.Context = mask(agent.Encoded(res.Context))
	}
	return e
}

// findings is a directory with a file for each difference. People read them, and the daemon never does.
type findings struct{ at *beneath.Dir }

const findingsDir = "differences"

// write writes the finding out, without input and journal where it would be too large, and removes the oldest ones beyond maxFindings.
func (d findings) write(f *Finding) (string, error) {
	if data, err := json.Marshal(f); err != nil || len(data) > maxFindingBytes {
		f.Truncated, f.Args, f.Kwargs, f.Context, f.History, f.Journal = true, nil, nil, nil, nil, nil
		f.Engine, f.Native = f.Engine.short(), f.Native.short()
	}
	file := path.Join(findingsDir, f.key().file()+"-"+ids.New("diff")+".json")
	data, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = writeWhole(d.at, file, data)
	}
	if err != nil {
		return "", err
	}
	names, err := d.names()
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(idOf(a), idOf(b)) }) // ids are ordered by time
	for _, name := range names[:max(0, len(names)-maxFindings)] {
		err = errors.Join(err, d.at.RemoveAll(path.Join(findingsDir, name)))
	}
	return d.at.Path(file), err
}

// short is the end without large values.
func (e End) short() End {
	const most = 64 << 10
	if len(e.Value) > most {
		e.Value = nil
	}
	if len(e.Context) > most {
		e.Context = nil
	}
	return e
}

func idOf(name string) string {
	_, id, _ := strings.Cut(name, "-")
	return id
}

func (d findings) names() (names []string, err error) {
	names, err = d.at.List(findingsDir)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".json") }), ignoreMissing(err)
}

// remove removes what was written out about the program.
func (d findings) remove(k Key) error {
	names, err := d.names()
	for _, name := range names {
		if strings.HasPrefix(name, k.file()+"-") {
			err = errors.Join(err, d.at.RemoveAll(path.Join(findingsDir, name)))
		}
	}
	return err
}

// A Difference is a program that stays on the engine because it ends otherwise natively.
type Difference struct {
	Namespace                   agent.Namespace
	Role, Method, Checksum, Why string
	At                          time.Time
}

// Differences lists the programs that differ, as the daemon with that data directory has found.
func Differences(dir string) ([]Difference, error) {
	at, err := beneath.Open(dir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer func() { _ = at.Close() }() // it was only read
	v := verdicts{at: at}
	if v.key, err = seal.Read(at); err != nil {
		return nil, nil // no verdict counts
	}
	names, err := v.all()
	var out []Difference
	for _, name := range names {
		if x, err := v.one(name); err == nil && x.Verdict == differs {
			out = append(out, Difference{x.key().Namespace, x.Role, x.Method, x.Checksum, x.Why, x.At})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), strings.Compare(a.Role+"."+a.Method, b.Role+"."+b.Method))
	})
	return out, err
}
