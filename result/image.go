package result

// An Image is a picture of a result, for models that see.
type Image struct {
	// MIMEType is what the bytes are, such as image/png.
	MIMEType string
	// Base64 holds the bytes in standard base64 with padding.
	Base64 string
}

// URL returns the image as a data URL, the form in which both OpenAI APIs take
// it.
func (i Image) URL() string { return "data:" + i.MIMEType + ";base64," + i.Base64 }
