//! By which rule text is left out of the main content.

/// Why some text of a page is not part of its main content. Of several rules it is the first that applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Menus, breadcrumbs, tables of contents, links to the pages before and behind, skip links.
    Navigation,
    /// The header of the site.
    Header,
    /// The footer of the site, copyright and legal notes.
    Footer,
    /// Side bars.
    SideBar,
    /// Search forms.
    Search,
    /// Dialogs, alerts, notices about cookies.
    Dialog,
    /// Buttons and lists of choices.
    Control,
    /// Advertisements, links to share a page, related pages.
    Promotion,
    /// What a browser does not show.
    Hidden,
    /// The title of the page.
    Title,
    /// What is outside of the main element.
    OutsideMain,
}

impl Rule {
    /// Its name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Navigation => "navigation",
            Self::Header => "header",
            Self::Footer => "footer",
            Self::SideBar => "side-bar",
            Self::Search => "search",
            Self::Dialog => "dialog",
            Self::Control => "control",
            Self::Promotion => "promotion",
            Self::Hidden => "hidden",
            Self::Title => "title",
            Self::OutsideMain => "outside-main",
        }
    }
}
