package gate

import "go/types"

func (c *check) boundTokens() *Refusal        { return nil }
func (c *check) syntaxPolicy() *Refusal       { return nil }
func (c *check) typePolicy() *Refusal         { return nil }
func (c *check) facts() Facts                 { return Facts{} }
func (c *check) hintFor(e types.Error) string { return "" }
