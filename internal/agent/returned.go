package agent

import "time"

// Returned records that a person's change brought back a kept generation that breaks active examples. It answers
// nevertheless. A person may approve it or make another generation current.
type Returned struct {
	Generation string    `json:"generation"`
	Breaks     []string  `json:"breaks"` // ids of the active examples that it broke
	At         time.Time `json:"at"`
}

// BreaksReturned returns the generation that a person's change brought back and the ids of the active examples that it
// breaks. It returns nil if there is none, or if none of these examples is active any more.
func (a *Artifact) BreaksReturned() (g *Generation, ids []string) {
	if a.Returned == nil {
		return nil, nil
	}
	if g = a.Find(a.Returned.Generation); g == nil {
		return nil, nil
	}
	if ids = a.active(a.Returned.Breaks); len(ids) == 0 {
		return nil, nil
	}
	return g, ids
}

// endReturn clears Returned once another change decides which generation answers.
func (a *Artifact) endReturn(c *ArtifactChange) {
	r := a.Returned
	if r == nil {
		return
	}
	adopted := c.Generation != nil && a.CurrentID == c.Generation.ID
	approved := c.Approve != nil && *c.Approve && (c.ApproveOf == r.Generation || c.ApproveOf == "" &&
		a.CurrentID == r.Generation)
	checked := c.Reworded != nil && c.Reworded.Of != ""
	if adopted || approved || checked || c.Current != "" || c.Revert != nil {
		a.Returned = nil
	}
}

// noteReturn updates Returned after the change c.
func (a *Artifact) noteReturn(c *ArtifactChange) {
	if a.endReturn(c); c.Returned == nil {
		return
	}
	if a.Returned = nil; c.Returned.Generation != "" {
		a.Returned = c.Returned
	}
}
