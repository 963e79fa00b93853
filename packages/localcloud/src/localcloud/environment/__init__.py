"""What a program needs so that Google's clients in it come here."""
