package disk

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Ids and names in documents and entries become file names. An archive may contain anything. Names that no store gives
// are refused when they are read, so that no other file below the directory is opened or removed.

// checkNames returns an error if the entry names a file that a store would not.
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

// checkArchived returns an error if a name is not that of a file in the archive.
func checkArchived(names []string) error {
	for _, name := range names {
		if !fs.ValidPath(name) || !strings.HasPrefix(name, archiveDir+"/") {
			return fmt.Errorf("%.80q is not a file of the archive", name)
		}
	}
	return nil
}

// checkFiles returns an error if an id in the document cannot be a file name.
func checkFiles(doc *filesDoc) error {
	for i := range doc.Files {
		if !validID(doc.Files[i].ID) {
			return badID(doc.Files[i].ID)
		}
	}
	return nil
}
