"""Plan in; request documents and custom jobs out, and what their failures mean."""
