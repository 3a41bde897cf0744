package disk

import (
	"encoding/json"
	"path"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// An export of one namespace has the form of any other: its files where they always are, a checkpoint that knows no other namespace, and the
// journal with each entry of another one emptied, so that the numbers of entries have no gaps.

// content exports the files, and the checkpoint that says how far they go.
func (x *exporter) content() error {
	if x.only == "" {
		return x.tree(".")
	}
	if err := x.tree(namespaceDir(x.only)); err != nil {
		return err
	}
	return x.checkpoint()
}

// others reports whether a file or directory of the top is not the namespace's that is exported alone.
func (x *exporter) others(name string) bool {
	return x.only != "" && (name == journalDir || name == namespacesDir)
}

// checkpoint exports the checkpoint with what it says of the namespace.
func (x *exporter) checkpoint() error {
	var all checkpointDoc
	if _, err := readOptional(x.fs, checkpointFile, &all, nil); err != nil {
		return err
	}
	one := checkpointDoc{head: head{agent.SchemaVersion, all.LSN}}
	if x.only == agent.DefaultNamespace {
		one.checkpointed = all.checkpointed
	} else {
		one.SchemaVersion, one.Namespaces = namespacesVersion,
			map[agent.Namespace]*checkpointed{x.only: all.Namespaces[x.only]}
	}
	text, err := encodeDoc(one)
	if err != nil {
		return err
	}
	return x.text(checkpointFile, text)
}

// segment exports a segment of the journal.
func (x *exporter) segment(seg wal.Segment) error {
	if x.only == "" {
		return x.file(seg.Name)
	}
	data, err := x.fs.ReadFile(seg.Name)
	if err != nil {
		return err
	}
	if data, err = seg.Rewrite(data, x.own); err != nil {
		return err
	}
	return x.text(seg.Name, data)
}

// own returns an entry of the journal if it is the namespace's, else one that does nothing.
func (x *exporter) own(text []byte) []byte {
	var e struct {
		At int64           `json:"t"`
		NS agent.Namespace `json:"ns,omitempty"`
	}
	if json.Unmarshal(text, &e) == nil && e.NS == journalName(x.only) {
		return text
	}
	e.NS = journalName(x.only)
	empty, _ := json.Marshal(e) // a number and a name
	return empty
}

// fileDirs lists the directories of files that people made.
func (x *exporter) fileDirs() ([]string, error) {
	if x.only != "" {
		return []string{path.Join(namespaceDir(x.only), filesDir)}, nil
	}
	dirs := []string{filesDir}
	names, err := x.fs.List(namespacesDir)
	if err != nil && !vfs.NotExist(err) {
		return nil, err
	}
	for _, name := range names {
		dirs = append(dirs, path.Join(namespacesDir, name, filesDir))
	}
	return dirs, nil
}
