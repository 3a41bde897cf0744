// Package history checks history input and turns it into messages. It works on plain data, does no I/O, and may be used concurrently.
package history
