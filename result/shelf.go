package result

// A Shelf keeps results that were cut.
type Shelf struct{}
