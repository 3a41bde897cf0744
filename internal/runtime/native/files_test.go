package native_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// OpenFile opens file_a, which is longer than many pieces.
func (host) OpenFile(_ context.Context, id string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	if id != "file_a" {
		return nil, &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: "no files"}
	}
	var b strings.Builder
	b.WriteString("region,units\n")
	for i := range 50_000 {
		fmt.Fprintf(&b, "%s,%d\n", []string{"north", "south"}[i%2], i)
	}
	return &sandbox.OpenFile{File: fileOf(id, []byte(b.String())), ReadSeekCloser: inMemory{strings.NewReader(b.String())}}, nil
}

// CreateFile takes what a program makes; its digest stands in the journal.
func (host) CreateFile(context.Context, string, string, string) (sandbox.NewFile, *sandbox.AuthoredError) {
	return &madeFile{}, nil
}

type madeFile struct{ bytes.Buffer }

type inMemory struct{ *strings.Reader }

func (inMemory) Close() error { return nil }

func (m *madeFile) Close() error    { return nil }
func (m *madeFile) Discard()        {}
func (m *madeFile) ID() string      { return "file_made" }
func (m *madeFile) End() agent.File { return fileOf(m.ID(), m.Bytes()) }

func fileOf(id string, text []byte) agent.File {
	sum := sha256.Sum256(text)
	return agent.File{ID: id, Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

// Compiled programs read and make files as the engine does, to the byte.
func TestFilesNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	t.Parallel()
	const source = `package tool

import (
	"encoding/csv"
	"recurgent"
	"strconv"
	"strings"
)

func Run(call *recurgent.Call) (any, error) {
	in, err := call.Open(call.Args[0])
	if err != nil {
		return nil, err
	}
	out, err := call.Create("upper.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	rows, to := csv.NewReader(in), csv.NewWriter(out)
	sum := 0
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(row[1]); err == nil {
			sum += n
		}
		to.Write([]string{strings.ToUpper(row[0]), row[1]})
	}
	to.Flush()
	text, err := call.DecodeText([]byte("M\xfcller"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"sum": sum, "file": out.Ref(), "text": text}, nil
}
`
	if refused := differences(t, []sample{{"files", source, []string{`["file_a"]`, `[{"$file": "file_a"}]`, `["file_gone"]`, `[7]`}}}); refused != 0 {
		t.Error("the program has no native form")
	}
}
