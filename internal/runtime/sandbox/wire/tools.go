package wire

import (
	"encoding/json"
	"fmt"
)

// A ToolStep is one run of a compiler or linker.
type ToolStep struct {
	Tool   string   // absolute path of a static executable
	Args   []string // relative paths are relative to Tools.Dir
	Writes string   // the one file that it may write, relative to Tools.Dir; the sandbox creates it
}

// Tools lists steps that run one after another until one fails, each in a process confined to the directories.
type Tools struct {
	Dir    string   // the working directory
	Read   []string // further directories that the steps may read
	Env    []string // environment, in addition to the limits of the Go runtime
	Memory int64    // bytes of data per step
	CPU    int64    // seconds of processor time per step
	File   int64    // bytes of the written file
	Steps  []ToolStep
}

// Values of ToolLimit.Bound.
const (
	BoundCPU    = "processor time"
	BoundMemory = "memory"
	BoundFile   = "room for what it writes"
)

// A ToolLimit is the error of a tool that exceeded a bound of its Tools. The cause is the program that it compiled, not
// the machine.
type ToolLimit struct {
	Bound string // BoundCPU, BoundMemory or BoundFile
	Tool  string // name of the tool
	Most  string // value of the bound, with its unit
}

func (e *ToolLimit) Error() string {
	return fmt.Sprintf("the program is too large to %s: that needs more %s than the %s that a build may have", e.Tool,
		e.Bound, e.Most)
}

// maxNativeText bounds the text that a runner writes for the compiler, in bytes.
const maxNativeText = 4 << 20

// MaxChecked bounds the payload of a Checked, in bytes.
const MaxChecked = maxNativeText + MaxFacts

// PutNativeText builds the frame in f that asks a runner to check a source and to write the text for the compiler.
func PutNativeText(f *Builder, source string) {
	f.Begin(KindText)
	f.PutString(source)
}

// A Checked is a runner's report on a source to compile: facts and the text for the compiler, or why there are none.
type Checked struct {
	Loaded
	Text string // set together with Facts
}

// Put builds the frame in f. A text longer than maxNativeText is replaced by an error.
func (c *Checked) Put(f *Builder) {
	if len(c.Text) > maxNativeText {
		c = &Checked{Loaded: Loaded{Error: "its text is too long for the compiler"}}
	}
	f.Begin(KindTextDone)
	f.PutString(c.Text)
	c.putBody(f)
}

// ParseChecked parses a payload of at most MaxChecked bytes. It makes the same checks as ParseLoaded.
func ParseChecked(payload []byte) (*Checked, error) {
	p := parse(payload)
	text := p.TakeText(maxNativeText)
	l, err := takeLoaded(&p)
	if err != nil {
		return nil, err
	}
	if (l.Facts != nil) != (text != "") {
		return nil, ErrFrame
	}
	return &Checked{Loaded: *l, Text: text}, nil
}

// putJSON builds a frame whose payload is JSON. Frames of a start do not use it.
func putJSON(f *Builder, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f.Begin(kind)
	f.PutRaw(body)
	return nil
}
