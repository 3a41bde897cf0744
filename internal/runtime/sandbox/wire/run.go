package wire

import (
	"encoding/json"
	"time"
)

// A Run asks a runner to run its program once. JSON is transmitted verbatim.
type Run struct {
	Nonce uint64 // repeated in every message of the run
	Now   time.Time
	Seed  uint64

	Depth                         int
	Role, Method, CallID, TraceID string

	Args         []json.RawMessage
	Kwargs       json.RawMessage            // a JSON object; empty means none
	Context      map[string]json.RawMessage // by top-level key
	InputHistory json.RawMessage
}

// Put builds the frame in f.
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
}

// ParseRun parses a run. The result shares no memory with the payload, because a program reads its arguments after the
// frame has been overwritten.
func ParseRun(payload []byte) (*Run, error) {
	p := parse(payload)
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
	if !p.End() {
		return nil, ErrFrame
	}
	return r, nil
}
