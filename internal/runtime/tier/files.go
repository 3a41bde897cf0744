package tier

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// Verdicts on programs.
const (
	proved  = "proved"  // the executable reproduced everything
	differs = "differs" // it ended otherwise than the engine
	broken  = "broken"  // it failed
)

// A verdict is what is known of a program for later processes.
type verdict struct {
	Namespace  agent.Namespace `json:"namespace,omitempty"` // absent: the default one
	Role       string          `json:"role"`
	Method     string          `json:"method"`
	Checksum   string          `json:"checksum"` // of the program
	Verdict    string          `json:"verdict"`
	Why        string          `json:"why,omitempty"`
	Executable string          `json:"executable,omitempty"` // digest of its bytes
	File       string          `json:"file,omitempty"`       // where it was
	Identity   string          `json:"identity"`             // of toolchain and daemon
	At         time.Time       `json:"at"`
}

// verdicts is a directory with a file for each verdict. A verdict lets an executable answer without another look at it, so only those count that have a seal of this
// installation.
type verdicts struct {
	at  *beneath.Dir
	key *seal.Key
}

const (
	verdictsDir = "verdicts"
	verdictKind = "verdict"
)

// sealedVerdict is a verdict's file.
type sealedVerdict struct {
	Verdict json.RawMessage `json:"verdict"`
	Seal    string          `json:"seal"`
}

// fileOf names what belongs to a method: nobody can choose a role or method so that it leads elsewhere.
func fileOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// file names what belongs to the program, in the default namespace as earlier versions did.
func (k Key) file() string {
	parts := []string{k.Role, k.Method, k.Checksum}
	if k.Namespace != agent.DefaultNamespace {
		parts = append(parts, string(k.Namespace))
	}
	return fileOf(parts...)
}

// stored is the namespace as it stands in files: none for the default one.
func (k Key) stored() agent.Namespace {
	if k.Namespace == agent.DefaultNamespace {
		return ""
	}
	return k.Namespace
}

func (v *verdict) key() Key {
	return Key{cmp.Or(v.Namespace, agent.DefaultNamespace), v.Role, v.Method, v.Checksum}
}

func verdictFile(k Key) string { return path.Join(verdictsDir, k.file()+".json") }

func (v verdicts) write(x verdict) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	name := verdictFile(x.key())
	if text, err = json.Marshal(sealedVerdict{text, v.key.SealText(verdictKind, name, text)}); err != nil {
		return err
	}
	return writeWhole(v.at, name, text)
}

func (v verdicts) remove(k Key) error { return ignoreMissing(v.at.Remove(verdictFile(k))) }

// one reads a verdict of the file.
func (v verdicts) one(name string) (x verdict, err error) {
	data, err := v.at.ReadFile(name)
	if err != nil {
		return x, err
	}
	var sealed sealedVerdict
	if err := json.Unmarshal(data, &sealed); err != nil {
		return x, err
	}
	if !seal.Fits(sealed.Seal, v.key.SealText(verdictKind, name, sealed.Verdict)) {
		return x, errors.New("the verdict has no seal of this installation")
	}
	if err = json.Unmarshal(sealed.Verdict, &x); err == nil && verdictFile(x.key()) != name {
		err = errors.New("the verdict is on another program")
	}
	return x, err
}

// all lists the files.
func (v verdicts) all() ([]string, error) {
	names, err := v.at.List(verdictsDir)
	for i := range names {
		names[i] = path.Join(verdictsDir, names[i])
	}
	return names, ignoreMissing(err)
}

// read returns the verdicts that this installation reached with the same toolchain and daemon, at most maxPrograms, and removes the others and what cannot be read.
func (v verdicts) read(identity string) ([]verdict, error) {
	names, err := v.all()
	if err != nil {
		return nil, err
	}
	var all []verdict
	for _, name := range names {
		x, err := v.one(name)
		if err != nil || x.Identity != identity {
			_ = v.at.RemoveAll(name) // at worst it is looked at again
			continue
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b verdict) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) })
	return all[:min(len(all), maxPrograms/2)], nil
}

// dropWrong removes what has the name of one of the tier's directories and is none.
func dropWrong(at *beneath.Dir) error {
	for _, name := range []string{verdictsDir, findingsDir} {
		_, err := at.List(name)
		if _, wrong := errors.AsType[*beneath.KindError](err); !wrong {
			continue
		}
		if err := at.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes the file so that it is whole or absent, whatever happens.
func writeWhole(at *beneath.Dir, name string, data []byte) error {
	dir := path.Dir(name)
	if err := at.Mkdir(dir, 0o700); err != nil {
		return err
	}
	temp := path.Join(dir, ".new-"+rand.Text())
	f, err := at.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = at.Rename(temp, name)
	}
	if err != nil {
		_ = at.Remove(temp) // nothing names it
	}
	return err
}
