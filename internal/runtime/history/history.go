// Package history checks history input and turns it into messages. It works on plain data, does no I/O, and may be used concurrently.
// An input has at most 1 MiB and 1,000 elements, and is read in a time linear in that.
package history
