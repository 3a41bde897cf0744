// Package wal is a write-ahead log: numbered entries of arbitrary bytes, written in batches. A batch that was synced,
// by Write or by Sync, survives a kill and a power cut. Any other batch may be lost, but only as a whole.
//
// The log is a sequence of segments, <dir>/<number of the first entry>.wal. A segment is a sequence of frames. Each
// frame holds one batch:
//
//	magic 4 bytes, length of the payload 4, CRC-32C of all that follows 4, number of entries 4, number of the first 8,
//	payload: for each entry its length as a uvarint and its bytes
//
// All integers are little-endian. The last frame is followed by nothing or by zeros. Entries are numbered 1, 2, 3 and
// so on; the number is also called the log sequence number (lsn). A bad frame at the end is a batch that a crash
// interrupted. A bad frame followed by a good one is damage if it had been synced, which the entries after it show: see
// package disk.
//
// The number in a segment's name invalidates the entries of older segments from that number on. This keeps a batch
// rejected after its fsync failed, even if it did reach the disk. Batches that were accepted before their sync failed
// are written again at the start of the new segment.
//
// The package knows neither what the entries mean nor when they are no longer needed.
package wal
