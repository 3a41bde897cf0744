// Package jsonl keeps append-only files of JSON values, one per line. It finds lines without reading the whole file: by
// position, from the end, by bisection if the lines are ordered, and by key (Log).
//
// Lines that Append has written survive a kill and, once synced, a power cut. A crash may leave a torn last line. The
// caller records up to where the file is known to be complete (Place); Open drops the rest at the next start.
//
// The package knows nothing about the meaning of lines, except for the keys and times that its caller extracts from
// them.
package jsonl
