// Package jsonl keeps files of JSON values, one a line, that only grow, and finds lines in them again without reading
// the whole: by position, from the end, by bisection where the lines are in order, and by key (Log).
//
// What Append has written survives a kill, and a power cut once it was synced. A crash may leave a torn last line. The
// caller notes how far the file is known to be whole (Place) and cuts off the rest at the next start.
//
// It knows nothing of what the lines say, but for the keys and the times that its caller reads out of them.
package jsonl
