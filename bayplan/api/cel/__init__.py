"""CEL: device selectors and validation rules in Google's expression language, with the functions of Kubernetes."""
