package agent

import "time"

// Returned records that a person's change brought back a kept generation that does not hold examples of now. It answers all the same; a person may approve it,
// or have another one answer.
type Returned struct {
	Generation string    `json:"generation"`
	Breaks     []string  `json:"breaks"` // ids of the active examples that it did not hold
	At         time.Time `json:"at"`
}

// BreaksReturned returns the generation that a person's change brought back and the ids of the active examples that it does not hold; nil if there is none, or no such
// example is active any more.
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

// endReturn forgets what a person's change brought back, once another change decides which generation answers.
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

// noteReturn ends the note on a program that a person's change brought back, or begins one.
func (a *Artifact) noteReturn(c *ArtifactChange) {
	if a.endReturn(c); c.Returned == nil {
		return
	}
	if a.Returned = nil; c.Returned.Generation != "" {
		a.Returned = c.Returned
	}
}
