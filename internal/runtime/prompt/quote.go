package prompt

// A Quote is a text that a prompt may hold, and whose it is. What came with a call, and what its programs answered, fetched or failed with, is
// content for the owner of the call; to others only its shape is shown. The zero Quote says nothing.
type Quote struct {
	owner  string // "" of nobody's, and of what is public
	public bool
	text   string
	shape  string
}

// Of returns a text of the owner's, "" where that is not known, and what others may read in its place: words without its content, or nothing.
func Of(owner, text, shape string) Quote { return Quote{owner: owner, text: text, shape: shape} }

// Public returns a text that everybody in the namespace may read: our own words, programs, contracts, declared parameters, examples, names of hosts
// and tools, and what people who may operate say of a method.
func Public(text string) Quote { return Quote{public: true, text: text} }

// For returns what the owner may read.
func (q Quote) For(owner string) string {
	if q.public || q.owner != "" && q.owner == owner {
		return q.text
	}
	return q.shape
}

// A Part is a part of the evidence: lines that together take at most Most bytes, so that none crowds out another part.
type Part struct {
	Most  int
	Lines []Quote
}
