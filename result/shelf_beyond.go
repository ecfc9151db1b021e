package result

import (
	"context"
	"encoding/json"
)

// Documents keep results that were cut outside the memory of one process, by the caller
// and a handle, each for a while. They are safe for concurrent use.
type Documents interface {
	// Keep keeps a document, if it can; nobody waits for it.
	Keep(caller, handle string, document []byte)
	// Find returns a document of that very caller; nil where there is none.
	Find(ctx context.Context, caller, handle string) []byte
}

// A keptDocument is a kept result as it leaves the process.
type keptDocument struct {
	Roots []keptRoot `json:"roots"`
	Blobs []keptBlob `json:"blobs,omitempty"`
	Limit int        `json:"limit"`
}

type keptRoot struct {
	Pointer string `json:"pointer"`
	// Value is the JSON text of the document, byte for byte, as a string.
	Value []byte `json:"value"`
}

type keptBlob struct {
	Base64   string `json:"base64"`
	Size     int    `json:"size"`
	MIME     string `json:"mime,omitempty"`
	Declared string `json:"declared,omitempty"`
}

// encode returns the result as a document.
func (k *kept) encode() []byte {
	d := keptDocument{Limit: k.limit}
	for _, r := range k.roots {
		d.Roots = append(d.Roots, keptRoot{r.pointer, r.doc.b[r.node.start:r.node.end]})
	}
	for _, b := range k.blobs {
		d.Blobs = append(d.Blobs, keptBlob{string(b.base64), b.size, b.mime, b.declared})
	}
	document, err := json.Marshal(d)
	if err != nil {
		return nil // it is texts and numbers
	}
	return document
}

// decodeKept returns the result that encode made a document of; nil for what is none.
func decodeKept(document []byte) *kept {
	var d keptDocument
	if json.Unmarshal(document, &d) != nil || len(d.Roots) == 0 {
		return nil
	}
	var roots []root
	for _, r := range d.Roots {
		scanned, err := scan(r.Value)
		if err != nil {
			return nil
		}
		roots = append(roots, root{r.Pointer, piece{doc: scanned, node: scanned.root, owned: len(r.Value)}})
	}
	var blobs []binary
	for _, b := range d.Blobs {
		blobs = append(blobs, binary{base64: []byte(b.Base64), size: b.Size, mime: b.MIME, declared: b.Declared})
	}
	return newKept(nil, d.Limit, blobs, roots)
}
