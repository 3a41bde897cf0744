package disk

import (
	"encoding/json"
	"path"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// An export of one namespace has the same layout as any other: the files in their usual places, a checkpoint that names
// no other namespace, and the journal, in which entries of other namespaces are emptied. This keeps the numbers of
// entries without gaps.

// content exports the files, and the checkpoint that records how far they go.
func (x *exporter) content() error {
	if x.only == "" {
		return x.tree(".")
	}
	if err := x.tree(namespaceDir(x.only)); err != nil {
		return err
	}
	return x.checkpoint()
}

// others reports whether a file or directory at the top does not belong to the namespace that is exported alone.
func (x *exporter) others(name string) bool {
	return x.only != "" && (name == journalDir || name == namespacesDir)
}

// checkpoint exports the checkpoint reduced to the namespace.
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

// own returns the journal entry unchanged if it belongs to the namespace, and otherwise an entry that does nothing.
func (x *exporter) own(text []byte) []byte {
	var e struct {
		At int64           `json:"t"`
		NS agent.Namespace `json:"ns,omitempty"`
	}
	if json.Unmarshal(text, &e) == nil && e.NS == journalName(x.only) {
		return text
	}
	e.NS = journalName(x.only)
	empty, _ := json.Marshal(e) // a number and a name always encode
	return empty
}

// fileDirs returns the directories that hold the bytes of files.
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
