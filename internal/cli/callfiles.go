package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
)

// filesFit returns an error for a --file that is not NAME=FILE, or whose file does not exist, and for an --out that is
// not a directory.
func (t *callErrand) filesFit() error {
	if info, err := os.Stat(t.download.dir); err == nil && !info.IsDir() {
		return exitWith(ExitUsage, fmt.Errorf("--out: %s exists and is not a directory", t.download.dir))
	}
	for _, item := range t.files {
		name, file, ok := strings.Cut(item, "=")
		if !ok || name == "" || file == "" {
			such := strings.TrimSuffix(filepath.Base(item), filepath.Ext(item))
			return exitWith(ExitUsage,
				fmt.Errorf("--file: %q is not NAME=FILE, such as --file %s=%s, where the program reads the argument %s",
					item, such, item, such))
		}
		if _, err := os.Stat(file); err != nil && file != "-" {
			return exitWith(ExitUsage, fmt.Errorf("--file: %w", err))
		}
	}
	return nil
}

// upload uploads the files of --file to the call's session and adds references to them to the keyword arguments.
func (t *callErrand) upload(ctx context.Context, c *client.Client, kwargs json.RawMessage) (json.RawMessage, error) {
	if len(t.files) == 0 {
		return kwargs, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(kwargs, &all); err != nil {
		return nil, exitWith(ExitUsage, err)
	}
	for _, item := range t.files {
		name, file, _ := strings.Cut(item, "=")
		f, err := uploadFile(ctx, c, t.sh, file, t.session)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(t.sh.Stderr, "file %s %s (%d bytes)\n", text.Clean(name, 0), text.Clean(f.ID, 0), f.Bytes)
		all[name] = agent.FileRef(f.ID)
	}
	return json.Marshal(all)
}

// uploadFile uploads a local file, or standard input for "-".
func uploadFile(ctx context.Context, c *client.Client, sh Shell, name, session string) (agent.File, error) {
	about := agent.File{Name: filepath.Base(name), MediaType: typeOf(name), SessionID: session}
	if name == "-" {
		about.Name = "stdin"
		f, err := c.Upload(ctx, about, sh.Stdin, -1)
		return f, exitWith(ExitUnreachable, err)
	}
	r, err := os.Open(name)
	if err != nil {
		return agent.File{}, exitWith(ExitUsage, err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; - is standard input", name)
	}
	if err != nil {
		return agent.File{}, exitWith(ExitUsage, err)
	}
	f, err := c.Upload(ctx, about, r, info.Size())
	return f, exitWith(ExitUnreachable, err)
}

// localFile returns a hint for a call that failed because an argument is the name of a local file, or "".
func localFile(r client.CallRequest, o *agent.Outcome) string {
	if o.ErrorType != agent.ErrInvalidInput && o.ErrorType != agent.ErrFileNotFound {
		return ""
	}
	named := map[string]json.RawMessage{}
	_ = json.Unmarshal(r.Kwargs, &named) // they were sent, so they are an object
	for i, a := range r.Args {
		named[fmt.Sprintf("NAME %d", i)] = a
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var file string
		// the daemon's message has the name cut like this
		if json.Unmarshal(named[name], &file) != nil || !strings.Contains(o.ErrorMessage, agent.Clip(file, 64)) {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			parameter, _, _ := strings.Cut(name, " ")
			return fmt.Sprintf("; --file %s sends the file here as that argument",
				why.Argument(parameter+"="+file))
		}
	}
	return ""
}

// typeOf guesses a file's media type from its extension.
func typeOf(name string) string {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".csv":
		return "text/csv"
	case ".txt", ".log":
		return "text/plain"
	case ".jsonl", ".ndjson":
		return "application/jsonl"
	default:
		if t := mime.TypeByExtension(ext); t != "" {
			return t
		}
	}
	return "application/octet-stream"
}

// A download holds the settings for downloaded files.
type download struct {
	dir       string
	overwrite bool
}

// all downloads the files that the value refers to and reports each on say. A file that cannot be saved does not keep
// others from it; the error names the command that gets it.
func (d *download) all(ctx context.Context, c *client.Client, say io.Writer, value json.RawMessage) error {
	ids := agent.FileRefs(value)
	if len(ids) == 0 {
		return nil
	}
	if err := os.MkdirAll(d.dir, 0o777); err != nil {
		return err
	}
	// The root confines file names that the daemon chose to this directory.
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	taken := map[string]bool{}
	var missed []error
	for _, id := range ids {
		var f agent.File
		if err := c.Get(ctx, client.FilePath(id), &f); err != nil {
			missed = append(missed, d.again(id, err))
			continue
		}
		name := safeName(f)
		// Ignore case, because some file systems do.
		if taken[strings.ToLower(name)] {
			name = safeName(agent.File{Name: safeID(f.ID) + "-" + name})
		}
		taken[strings.ToLower(name)] = true
		if err := d.one(ctx, c, root, name, f); err != nil {
			missed = append(missed, d.again(id, err))
			continue
		}
		fmt.Fprintf(say, "saved %s (%d bytes)\n", text.Clean(filepath.Join(d.dir, name), 400), f.Bytes)
	}
	return errors.Join(missed...)
}

// again returns the reason why a file was not saved, and the command that saves it if it exists.
func (d *download) again(id string, err error) error {
	var no *client.Refusal
	if errors.As(err, &no) && no.Status == http.StatusNotFound {
		return err
	}
	command := "recurgentd files get " + why.Argument(id) + " --out " + why.Argument(d.dir)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; %s --overwrite replaces it", err, command)
	}
	return fmt.Errorf("%w; %s saves the file", err, command)
}

// An existsError names a file that is in the way of a download. It is fs.ErrExist.
type existsError string

func (e existsError) Error() string { return string(e) + " exists" }

func (e existsError) Is(target error) bool { return target == fs.ErrExist }

// one downloads a file and verifies its checksum. On failure it leaves no partial file and keeps an existing one.
func (d *download) one(ctx context.Context, c *client.Client, root *os.Root, name string, f agent.File) error {
	if _, err := root.Lstat(name); err == nil && !d.overwrite {
		return existsError(filepath.Join(d.dir, name))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Download to a temporary name, so that an interrupted download leaves no incomplete file.
	part := "." + safeID(f.ID) + ".part"
	w, err := root.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = c.Download(ctx, client.FilePath(f.ID)+"/content", io.MultiWriter(w, sum))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		err = fmt.Errorf("%s was damaged in transit: its checksum differs from the daemon's; download it again", name)
	}
	if err = errors.Join(err, w.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		_ = root.Remove(part) // the earlier error is the one to report
	}
	return err
}

// safeName returns a local file name for a file that was named elsewhere.
func safeName(f agent.File) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case !unicode.IsPrint(c):
			return -1
		case strings.ContainsRune(`/\:*?"<>|`, c):
			return '_'
		}
		return c
	}, strings.ToValidUTF8(f.Name, "_"))
	const longest = 200
	for len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}
	name = strings.TrimRight(strings.TrimSpace(name), ". ")
	if strings.HasPrefix(name, ".") {
		name = "_" + name[1:]
	}
	if name == "" {
		return safeID(f.ID)
	}
	return name
}

// safeID returns an id in a form that is safe as a file name.
func safeID(id string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, id)
}
