package wire

import (
	"encoding/json"
	"time"
)

// A Run asks a runner to run its program once. JSON travels as it is.
type Run struct {
	Nonce uint64 // comes back with all that the run says
	Now   time.Time
	Seed  uint64

	Depth                         int
	Role, Method, CallID, TraceID string

	Args         []json.RawMessage
	Kwargs       json.RawMessage            // an object or nothing
	Context      map[string]json.RawMessage // by top-level key
	InputHistory json.RawMessage

	Floats bool // an argument that is a number is a float64, however many digits it has
}

// Put builds the frame.
func (r *Run) Put(f *Builder) {
	f.Begin(KindRun)
	f.PutFixed(r.Nonce)
	f.PutFixed(uint64(r.Now.UnixNano()))
	f.PutFixed(r.Seed)
	f.PutUint(uint64(max(r.Depth, 0)))
	f.PutString(r.Role)
	f.PutString(r.Method)
	f.PutString(r.CallID)
	f.PutString(r.TraceID)
	f.PutUint(uint64(len(r.Args)))
	for _, a := range r.Args {
		f.PutBytes(a)
	}
	f.PutBytes(r.Kwargs)
	f.PutUint(uint64(len(r.Context)))
	for k, v := range r.Context {
		f.PutString(k)
		f.PutBytes(v)
	}
	f.PutBytes(r.InputHistory)
	f.PutUint(map[bool]uint64{true: 1}[r.Floats])
}

// ParseRun takes a run apart. The result shares no memory with the payload: a program reads its arguments later, when the frame is gone.
func ParseRun(payload []byte) (*Run, error) {
	p := Parse(payload)
	r := &Run{Nonce: p.TakeFixed(), Now: time.Unix(0, int64(p.TakeFixed())).UTC(), Seed: p.TakeFixed(),
		Depth: int(p.TakeUint())}
	r.Role, r.Method, r.CallID, r.TraceID = p.TakeString(), p.TakeString(), p.TakeString(), p.TakeString()
	r.Args = make([]json.RawMessage, p.TakeCount())
	for i := range r.Args {
		r.Args[i] = p.TakeCopy()
	}
	r.Kwargs = p.TakeCopy()
	if n := p.TakeCount(); n > 0 {
		r.Context = make(map[string]json.RawMessage, n)
		for range n {
			k, raw := p.TakeString(), p.TakeCopy()
			if p.bad {
				break
			}
			r.Context[k] = raw
		}
	}
	r.InputHistory = p.TakeCopy()
	r.Floats = p.TakeUint() == 1
	if !p.End() {
		return nil, ErrFrame
	}
	return r, nil
}
