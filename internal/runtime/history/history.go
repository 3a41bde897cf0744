// Package history checks history input and turns it into messages. It works on plain data, does no I/O, and may be used
// concurrently. With DefaultLimits, an input has at most 1 MiB and 1,000 elements. Reading it takes time linear in its
// size.
package history
