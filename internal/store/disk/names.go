package disk

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Ids and names in documents and entries become names of files. An archive may hold any: those that no store gives are refused where they are
// read, so that nothing else below the directory is opened or removed in the place of a file.

// checkNames refuses an entry that names a file which the store would not.
func (e *entry) checkNames() error {
	if e.Session != "" && !validID(e.Session) {
		return badID(e.Session)
	}
	if e.Create != nil && !validID(e.Create.Session.ID) {
		return badID(e.Create.Session.ID)
	}
	for _, list := range [...][]string{e.Delete, e.FilesGone} {
		for _, id := range list {
			if !validID(id) {
				return badID(id)
			}
		}
	}
	for i := range e.Files {
		if !validID(e.Files[i].ID) {
			return badID(e.Files[i].ID)
		}
	}
	for _, name := range [...]agent.Namespace{e.Make, e.Erase} {
		if name == "" {
			continue
		}
		if err := name.Validate(); err != nil {
			return err
		}
	}
	if e.Move == nil {
		return nil
	}
	if strings.Contains(e.Move.Stamp, "/") {
		return fmt.Errorf("%.80q cannot be a stamp", e.Move.Stamp)
	}
	return checkArchived(e.Move.Files)
}

func badID(id string) error { return fmt.Errorf("%.80q cannot be an id", id) }

// checkArchived refuses names of files that are not in the archive.
func checkArchived(names []string) error {
	for _, name := range names {
		if !fs.ValidPath(name) || !strings.HasPrefix(name, archiveDir+"/") {
			return fmt.Errorf("%.80q is not a file of the archive", name)
		}
	}
	return nil
}

// checkFiles refuses a document of files with a file that has no name.
func checkFiles(doc *filesDoc) error {
	for i := range doc.Files {
		if !validID(doc.Files[i].ID) {
			return badID(doc.Files[i].ID)
		}
	}
	return nil
}
