package wire

import "encoding/json"

// A ToolStep is one run of a compiler or linker.
type ToolStep struct {
	Tool   string   // absolute path of a static executable
	Args   []string // relative paths in them start at Tools.Dir
	Writes string   // path in Tools.Dir of the one file that it may write, which the sandbox makes
}

// Tools are steps to run one after another until one fails, each in a process that is confined to the directories.
type Tools struct {
	Dir    string   // the working directory
	Read   []string // other directories that they may read
	Env    []string // more of their environment, which holds the bounds of the Go runtime alone
	Memory int64    // bytes of data that each may have
	CPU    int64    // seconds of processor time that each may use
	File   int64    // bytes of the file that it writes
	Steps  []ToolStep
}

// MaxNativeText bounds the text of a program's native form, in bytes.
const MaxNativeText = 4 << 20

// PutNativeText builds the frame that brings a source, for a text to be compiled.
func PutNativeText(f *Builder, source string) {
	f.Begin(KindText)
	f.PutString(source)
}

// A NativeText is what a runner made of a source: a text, or why there is none.
type NativeText struct {
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Put builds the frame.
func (t *NativeText) Put(f *Builder) {
	if err := putJSON(f, KindTextDone, t); err != nil || len(f.b)-frameHead > MaxNativeText {
		f.Begin(KindTextDone)
		f.PutRaw([]byte(`{"reason":"its text is too long"}`))
	}
}

// ParseNativeText takes a payload of at most MaxNativeText bytes apart. One of the two members is set.
func ParseNativeText(payload []byte) (t NativeText, err error) {
	if json.Unmarshal(payload, &t) != nil || (t.Text == "") == (t.Reason == "") {
		return t, ErrFrame
	}
	t.Reason = BoundText([]byte(t.Reason), MaxMessage)
	return t, nil
}

func putJSON(f *Builder, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f.Begin(kind)
	f.PutRaw(body)
	return nil
}
