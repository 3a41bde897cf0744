// Package wal is a write-ahead log: numbered entries of arbitrary bytes, written in batches. A batch that Write has accepted
// survives a kill and a power cut; any other is missing as a whole.
//
// The log is a sequence of segments, <dir>/<number of the first entry>.wal. A segment is a sequence of frames. One frame
// is one batch and reaches the disk with one fsync:
//
//	magic 4 bytes, length of the payload 4, CRC-32C of all that follows 4, number of entries 4, number of the first 8,
//	payload: for each entry its length as a uvarint and its bytes
//
// all little-endian. Entries are numbered 1, 2, 3 and so on; the number is also called the log sequence number (lsn).
// A frame is written only after the one before it is on disk. So a bad frame followed by a good one is damage, and a
// bad frame at the end is a batch that a crash interrupted.
//
// The number in a segment's name invalidates the entries of older segments from that number on. That is how a batch
// whose fsync failed, and which was therefore refused, stays refused.
//
// The package knows neither what the entries mean nor when they are no longer needed.
package wal
