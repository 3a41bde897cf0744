package eject

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

func sumOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func stored(name, data string) File {
	return File{agent.File{ID: "file_1", Name: name, MediaType: "text/csv", Bytes: int64(len(data)),
		SHA256: sumOf(data)}, []byte(data)}
}

// reader returns a program with a recorded call that read file_1 with that digest.
func reader(sum string, files map[string]File) *Program {
	effects := fmt.Sprintf(`{"asks":[{"op":"open","params":{"file":"file_1","text":true},"result":{"file":"file_1","sha256":%q,"bytes":1}}]}`, sum)
	return &Program{Role: "r", Method: "m", Files: files,
		Fixtures: []agent.Fixture{{CallID: "call_1", Value: json.RawMessage("1"), Effects: json.RawMessage(effects)}}}
}

func gzipped(data string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(data))
	_ = z.Close()
	return b.String()
}

func deflated(data string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(data))
	_ = z.Close()
	return b.String()
}

func zipped(t *testing.T, name, data string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = z.Close()
	return b.String()
}

var plainPath = regexp.MustCompile(`^testdata/[0-9a-f]{16}(\.[a-z0-9]{1,8})?$`)

// A file read by a recorded call is included under a name derived from its bytes, or the call is left out with a
// reason.
func TestFilesTravel(t *testing.T) {
	t.Parallel()
	rules := mask.Compile([]string{"token", "password"})
	const secretText = "user: ada\npassword: hunter2-and-more\n"
	for _, c := range []struct {
		what   string
		file   File
		reason string
	}{
		{"a table", stored("sales.csv", "a,b\n1,2\n"), ""},
		{"a path for a name", stored("../../etc/cron.d/x.CSV", "a,b\n1,3\n"), ""},
		{"a hidden name", stored(".bashrc", "x"), ""},
		{"nothing", stored("empty", ""), ""},
		{"windows-1252", stored("m.csv", "M\xfcller"), ""},
		{"a byte order mark", stored("m.csv", "\xff\xfea\x00"), ""},
		{"another character set", stored("dos.csv", "M\x81ller;Stra\xe1e\r\nK\x94ln;\r\n"),
			"it reads text in ibm850, which the module does not read"},
		{"a secret", stored("s.txt", secretText), secretReason},
		{"a secret in UTF-16", stored("s.txt", "\xff\xfe"+strings.Join(strings.Split(secretText, ""), "\x00")+"\x00"),
			secretReason},
		{"a column of secrets", stored("s.csv", "user;password\nada;hunter2\n"), secretReason},
		{"a column of that name without rows", stored("s.csv", "user;password\n"), ""},
		{"a secret in a gzip file", stored("s.gz", gzipped(secretText)), secretReason},
		{"a secret in a cut gzip file", stored("s.gz", gzipped(strings.Repeat(secretText, 2000))[:200]), secretReason},
		{"a secret behind zlib", stored("s.z", deflated(secretText)), secretReason},
		{"a secret in an archive", stored("s.zip", zipped(t, "a.txt", secretText)), secretReason},
		{"a secret in an archive in an archive", stored("s.zip", zipped(t, "a.zip", zipped(t, "a.txt", secretText))),
			secretReason},
		{"a secret in an entry's name", stored("s.zip", zipped(t, "http://u:hunter2@x/a.txt", "")), secretReason},
		{"a secret in the file's name", stored("password=hunter2-and-more", "x"), secretReason},
		{"an archive", stored("a.zip", zipped(t, "a.txt", "text")), ""},
		{"a bomb", stored("b.gz", gzipped(strings.Repeat("\x00", maxUnpacked+1))), unsearched},
		{"a nest", stored("n.gz", gzipped(gzipped(gzipped(gzipped("\x00"))))), unsearched},
		{"a large file", File{agent.File{ID: "file_1", Bytes: maxFile + 1}, nil},
			"it reads a file of 1048577 bytes; a module takes files of up to 1048576"},
		{"no room", File{agent.File{ID: "file_1", Bytes: maxFile}, nil},
			"it reads a file of 1048576 bytes, and the module's files would exceed 33554432 bytes"},
	} {
		x := reader(sumOf(string(c.file.Data)), map[string]File{"file_1": c.file})
		if got := x.Reads(); len(got) != 1 || got[0] != "file_1" {
			t.Errorf("%s: reads %v", c.what, got)
		}
		_, recorded, contents, left := x.cases(rules)
		if c.reason != "" {
			if len(left) != 1 || left[0].Reason != c.reason || len(contents)+len(recorded.Files)+
				len(recorded.Calls) != 0 {
				t.Errorf("%s: %v left out, %d files, want %q", c.what, left, len(contents), c.reason)
			}
			continue
		}
		f := recorded.Files["file_1"]
		if len(left) > 0 || len(contents) != 1 || contents[f.Path] != string(c.file.Data) || f.Name != c.file.Name {
			t.Errorf("%s: %v left out, %v, %+v", c.what, left, contents, f)
		}
		if !plainPath.MatchString(f.Path) {
			t.Errorf("%s: the path is %q", c.what, f.Path)
		}
	}
}

// A missing file, or one with other bytes than the recorded call read, leaves out the call. A file of an example
// without effects is included.
func TestFilesOfOtherBytes(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]*Program{
		"it reads a file that is gone, file_1":     reader(sumOf("a"), nil),
		"it reads a file that has changed, file_1": reader(sumOf("a"), map[string]File{"file_1": stored("a.txt", "b")}),
	} {
		if _, _, contents, left := x.cases(nil); len(left) != 1 || left[0].Reason != want || len(contents) > 0 {
			t.Errorf("got %v, %v, want %q", left, contents, want)
		}
	}
	dos := "M\x81ller;Stra\xe1e\r\nK\x94ln;\r\n"
	bytes := reader(sumOf(dos), map[string]File{"file_1": stored("dos.csv", dos)})
	bytes.Fixtures[0].Effects = json.RawMessage(strings.Replace(string(bytes.Fixtures[0].Effects), `,"text":true`, "",
		1))
	if _, _, contents, left := bytes.cases(nil); len(left) > 0 || len(contents) != 1 {
		t.Errorf("a text that is read as bytes: %v left out", left)
	}
	x := &Program{Files: map[string]File{"file_1": stored("a.txt", "b")},
		Examples: []agent.Example{{ID: "ex_1", Args: []json.RawMessage{json.RawMessage(`{"$file":"file_1"}`)}}}}
	if _, recorded, contents, left := x.cases(nil); len(left) > 0 || len(contents) != 1 || len(recorded.Files) != 1 ||
		len(x.Reads()) != 1 {
		t.Errorf("got %v, %v, %v", left, contents, recorded)
	}
}
