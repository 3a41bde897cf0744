package prompt

import "strings"

// fillConnection renders a connection as one line.
func fillConnection(c Connection) string {
	line := plain(c.Name, 100) + ": " + plain(strings.Join(c.Methods, ", "), 100) + " of " +
		plain(strings.Join(c.Addresses, ", "), 600)
	if c.Whole {
		line += ", which is the whole address"
	}
	if c.Description != "" {
		line += ": " + plain(c.Description, 600)
	}
	return line
}
