package mcp

// Limits bound what a server can make us read, hold and do. The zero value of
// each field means its default.
type Limits struct {
	// Message is the size in bytes of one message: a line on stdio, an event, an
	// HTTP body after decompression; 16 MiB if zero. A longer message fails the
	// call that it answers with [ErrTooLarge].
	Message int64
	// Ratio is how many times larger than its compressed form an HTTP body may
	// be; 200 if zero. The first 64 KiB are free.
	Ratio int64
	// Pages, Items and List bound one list: its pages, its entries over all pages,
	// and its total bytes; 1,000, 50,000 and 64 MiB if zero.
	Pages, Items int
	List         int64
	// Rounds is how often a server may ask for input before it answers one
	// request (MCP 2026-07-28, "Multi Round-Trip Requests"); 10 if zero.
	Rounds int
	// Requests is how many requests of the server we work on at a time, with the
	// questions that wait for somebody to answer them; 128 if zero. Further ones
	// are answered with an error.
	Requests int
}

func (l Limits) filled() Limits {
	l.Message = or(l.Message, 16<<20)
	l.Ratio = or(l.Ratio, 200)
	l.Pages = or(l.Pages, 1000)
	l.Items = or(l.Items, 50_000)
	l.List = or(l.List, 64<<20)
	l.Rounds = or(l.Rounds, 10)
	l.Requests = or(l.Requests, 128)
	return l
}

// or returns value, or def where value is not positive.
func or[T ~int | ~int64](value, def T) T {
	if value <= 0 {
		return def
	}
	return value
}
