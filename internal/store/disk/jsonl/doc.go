// Package jsonl keeps append-only files of JSON values, one per line. It finds lines without reading the whole file: by
// position, from the end, by bisection where the lines are in order, and by key (Log).
//
// What Append has written survives a kill and, once synced, a power cut. A crash may leave a torn last line. The caller
// records up to where the file is known to be whole (Place) and truncates the rest at the next start.
//
// It knows nothing of what the lines mean, except for the keys and the times that its caller extracts from them.
package jsonl
