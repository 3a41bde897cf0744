// Package wal is a write-ahead log: numbered entries of arbitrary bytes, written in batches. A batch that was synced, by Write
// or by Sync, survives a kill and a power cut; any other may be missing, as a whole.
//
// The log is a sequence of segments, <dir>/<number of the first entry>.wal. A segment is a sequence of frames. One frame
// is one batch and reaches the disk with one fsync:
//
//	magic 4 bytes, length of the payload 4, CRC-32C of all that follows 4, number of entries 4, number of the first 8,
//	payload: for each entry its length as a uvarint and its bytes
//
// all little-endian. Behind the last frame there is nothing, or zeros. Entries are numbered 1, 2, 3 and so on; the number is also called the log sequence number (lsn).
// A bad frame at the end is a batch that a crash interrupted. One that is followed by a good frame is damage if it was synced, which the
// entries behind it say: see package disk.
//
// The number in a segment's name invalidates the entries of older segments from that number on. That is how a batch
// whose fsync failed, and which was therefore refused, stays refused. Batches that were accepted before their sync failed are written anew,
// at the beginning of such a segment.
//
// The package knows neither what the entries mean nor when they are no longer needed.
package wal
